#!/bin/bash
# Records what nginx, lighttpd and Apache really send to a FastCGI program, as seeds for
# the fuzzers: tests/fuzz/record.sh writes seeds/records/SERVER-N (eight bytes of cuts in
# front) and seeds/params/SERVER-N (four bytes of cuts and one of caps in front). The
# document root is /srv, which every Debian has; the rest is as the server sends it. Made
# with Debian 12's nginx 1.22, lighttpd 1.4.69 and Apache 2.4.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../support/lib.sh"
room_open
mkdir "$room/bytes"

recorder() { # SOCKET PREFIX
    start "recorder-$2" python3 "$here/record.py" "$1" "$room/bytes" "$2"
    sleep 0.5
}
ask() { # URL
    curl -sS --noproxy '*' -o "$room/out" "$1/api/a%20b/c?q=1&name=%C3%A9" \
        -H 'Cookie: sid=4711; theme=dark' -H 'X-Forwarded-For: 192.0.2.7'
    curl -sS --noproxy '*' -o "$room/out" "$1/api/form" -d 'user=ada&word=l%26ve'
    curl -sS --noproxy '*' -o "$room/out" -I "$1/api/head"
}

recorder "$room/nginx.sock" nginx
nginx_http="upstream app { server unix:$room/nginx.sock; keepalive 4; }"
nginx_start 0 <<END
root /srv;
location / { include /etc/nginx/fastcgi_params; fastcgi_keep_conn on; fastcgi_pass app; }
END
ask "http://127.0.0.1:$nginx_port"
stop "$nginx_pid" || true

recorder "$room/lighttpd.sock" lighttpd
port=$(free_port)
cat >"$room/lighttpd.conf" <<END
server.document-root = "/srv"
server.bind = "127.0.0.1"
server.port = $port
server.modules = ( "mod_fastcgi" )
fastcgi.server = ( "/api" => (( "socket" => "$room/lighttpd.sock", "check-local" => "disable" )) )
END
start lighttpd lighttpd -D -f "$room/lighttpd.conf"
started_or_die lighttpd tcp_listens "$port"
ask "http://127.0.0.1:$port"
stop "$pid" || true

recorder "$room/apache.sock" apache
port=$(free_port)
cat >"$room/apache.conf" <<END
ServerRoot $room
ServerName localhost
Listen 127.0.0.1:$port
PidFile $room/apache.pid
ErrorLog $room/apache-error.log
DocumentRoot /srv
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_fcgi_module /usr/lib/apache2/modules/mod_proxy_fcgi.so
ProxyPass /api unix:$room/apache.sock|fcgi://localhost/srv/api
END
start apache env PATH=/usr/sbin:/usr/bin:/sbin:/bin apache2 -d "$room" -f "$room/apache.conf" -DFOREGROUND
started_or_die apache tcp_listens "$port"
ask "http://127.0.0.1:$port"
stop "$pid" || true
sleep 1.5

python3 - "$room/bytes" "$here/seeds" <<'END'
import glob, os, sys
for path in sorted(glob.glob(sys.argv[1] + "/*")):
    data, at, params = open(path, "rb").read(), 0, b""
    while at + 8 <= len(data):
        length = data[at + 4] << 8 | data[at + 5]
        if data[at + 1] == 4 and length:
            params = data[at + 8 : at + 8 + length]  # the last request's
        at += 8 + length + data[at + 6]
    name = os.path.basename(path)
    open(f"{sys.argv[2]}/records/{name}", "wb").write(b"\x06\x00\x1f\x02\x07\x40\x08\x0f" + data)
    open(f"{sys.argv[2]}/params/{name}", "wb").write(b"\x06\x00\x1f\x02\x07" + params)
END
ls "$here"/seeds/records/{nginx,lighttpd,apache}-*
