-- Decides all rules of one request in one step, all or nothing: where one refuses, none is
-- charged. Nothing is written before every rule has been looked at.
--
-- KEYS     a counter for each rule
-- ARGV[1]  the format of ARGV[2]: little-endian doubles, 1 and 7 for each rule
-- ARGV[2]  the nonce, then for each rule: kind, 1 to charge it (else it is only asked), and
--          kind 1, fixed window: max, length in us, units asked for, 0, 0
--          kind 2, token bucket: what is asked for as time, in us and N-ths of one;
--                                the time to fill the bucket, likewise; N
--
-- A counter is two doubles, time and value as in lib/limit/limit.h, the time in us since
-- 1970 by this server's clock. Doubles are exact below 2^53, which no number here reaches
-- before the year 2255; they are packed, never printed, so that no digit is lost. What is
-- not a counter of ours, whatever its type, counts as never seen and is overwritten.
--
-- Within a window only the value is written, in its place, which costs half and leaves the
-- key the lifetime that the window began with. A key that has lost it gets one again with
-- the next window.
--
-- The reply is a string of doubles: the nonce, the time now, 1 where all admit, then each
-- counter as it was found. What remains and how long to wait is worked out from these by
-- the one who asked, with the arithmetic that all stores share.
local a = {struct.unpack(ARGV[1], ARGV[2])}
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local found = redis.call('MGET', unpack(KEYS))
local admitted, at = 1, 1
local reply, new = {a[1], now, 1}, {}

for i = 1, #KEYS do
    local time, value = 0, 0
    if found[i] and #found[i] == 16 then
        time, value = struct.unpack('<dd', found[i])
        if not (time >= 0 and time < 2^53 and value >= 0 and value < 2^32)
            or time % 1 ~= 0 or value % 1 ~= 0 then
            time, value = 0, 0
        end
    end
    reply[2 * i + 2], reply[2 * i + 3] = time, value

    if a[at + 1] == 1 then
        local max, length = a[at + 3], a[at + 4]
        if time <= now then
            time, value = now + length, 0
        elseif time > now + length then
            time = now + length
        end
        value = value + a[at + 5]
        if value > max then
            admitted = 0
        end
    else
        local ask, ask_part = a[at + 3], a[at + 4]
        local fill, fill_part, parts = a[at + 5], a[at + 6], a[at + 7]
        if time < now then
            time, value = now, 0
        elseif value >= parts then
            time, value = time + 1, 0
        end
        if time - now > fill or (time - now == fill and value > fill_part) then
            time, value = now + fill, fill_part
        end
        time, value = time + ask, value + ask_part
        if value >= parts then
            time, value = time + 1, value - parts
        end
        if time - now > fill or (time - now == fill and value > fill_part) then
            admitted = 0
        end
    end
    new[2 * i - 1], new[2 * i] = time, value
    at = at + 7
end

reply[3] = admitted
if admitted == 1 then
    at = 1
    for i = 1, #KEYS do
        if a[at + 2] == 1 then
            local time, value = new[2 * i - 1], new[2 * i]
            if a[at + 1] == 1 and time == reply[2 * i + 2] then
                redis.call('SETRANGE', KEYS[i], '8', struct.pack('<d', value))
            else
                redis.call('SET', KEYS[i], struct.pack('<dd', time, value),
                           'PX', math.ceil((time + 1 - now) / 1000))
            end
        end
        at = at + 7
    end
end
return struct.pack('<' .. string.rep('d', #reply), unpack(reply))
