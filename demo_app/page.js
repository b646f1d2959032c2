// The script of the demo's page. Text from answers goes into the page as text only.
'use strict';

const at = (id) => document.getElementById(id);
const plural = (n, word) => `${n} ${word}${n === 1 ? '' : 's'}`;

async function showWho() {
    const answer = await fetch('/whoami');
    const who = await answer.json();
    at('who').textContent = answer.ok ? `${who.type} ${who.id}` : who.detail;
}

async function logIn(event) {
    event.preventDefault();
    const answer = await fetch('/api/login', {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify({ user: at('user').value, password: at('password').value }),
    });
    const body = await answer.json();
    at('password').value = '';
    at('login-answer').textContent =
        answer.ok ? `Logged in as ${body.id}.` : `${answer.status}: ${body.detail}`;
    await showWho();
}

async function logOut(event) {
    event.preventDefault();
    const answer = await fetch('/api/logout', { method: 'POST' });
    at('login-answer').textContent = answer.ok ? 'Logged out.' : `${answer.status}`;
    await showWho();
}

function addRow(number, answer, body) {
    const field = (name) => answer.headers.get(name) ?? '';
    const row = at('answers').insertRow();
    row.className = answer.status === 429 ? 'refused' : '';
    row.dataset.status = answer.status;
    for (const text of [number, answer.status, field('RateLimit'), field('RateLimit-Policy'),
                        field('Retry-After'), field('Demo-Instance'), body])
        row.insertCell().textContent = text;
}

async function burst(event) {
    event.preventDefault();
    const button = event.target.querySelector('button');
    const count = at('count').valueAsNumber;
    const seen = new Map();
    let sent = 0;
    let arrived = 0;

    // Six at a time, as many connections as a browser opens to one server.
    async function sender() {
        while (sent < count) {
            sent += 1;
            const answer = await fetch('/api/weather/paris', { cache: 'no-store' });
            arrived += 1;
            addRow(arrived, answer, await answer.text());
            seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
        }
    }

    button.disabled = true;
    at('answers').replaceChildren();
    at('burst-answer').textContent = 'Sending.';
    try {
        await Promise.all(Array.from({ length: 6 }, sender));
        const parts = [...seen].sort().map(([status, n]) => `${n} x ${status}`);
        at('burst-answer').textContent =
            `${plural(count, 'request')}: ${parts.join(', ')}.`;
    } catch (error) {
        at('burst-answer').textContent = `After ${plural(arrived, 'answer')}: ${error.message}`;
    } finally {
        button.disabled = false;
    }
}

at('login').addEventListener('submit', logIn);
at('logout').addEventListener('submit', logOut);
at('burst').addEventListener('submit', burst);
showWho();
