-- Decides one rule and charges it where it admits. decide_several.lua says what the
-- numbers mean; here they are: nonce, kind, charge, then five of the rule.
local nonce, kind, charge, p1, p2, p3, p4, p5 = struct.unpack('<dddddddd', ARGV[1])
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local found = redis.pcall('GET', KEYS[1])
local time, value, old_time, old_value = 0, 0, 0, 0
if found and #found == 16 then
    time, value = struct.unpack('<dd', found)
    if not (time >= 0 and time < 2^53 and value >= 0 and value < 2^32)
        or time % 1 ~= 0 or value % 1 ~= 0 then
        time, value = 0, 0
    end
    old_time, old_value = time, value
end
local admitted = 1
if kind == 1 then
    if time <= now then
        time, value = now + p2, 0
    elseif time > now + p2 then
        time = now + p2
    end
    value = value + p3
    if value > p1 then
        admitted = 0
    end
else
    if time < now then
        time, value = now, 0
    elseif value >= p5 then
        time, value = time + 1, 0
    end
    if time - now > p3 or (time - now == p3 and value > p4) then
        time, value = now + p3, p4
    end
    time, value = time + p1, value + p2
    if value >= p5 then
        time, value = time + 1, value - p5
    end
    if time - now > p3 or (time - now == p3 and value > p4) then
        admitted = 0
    end
end
if admitted == 1 and charge == 1 then
    if kind == 1 and time == old_time then
        redis.call('SETRANGE', KEYS[1], '8', struct.pack('<d', value))
    else
        redis.call('SET', KEYS[1], struct.pack('<dd', time, value),
                   'PX', math.ceil((time + 1 - now) / 1000))
    end
end
return struct.pack('<ddddd', nonce, now, admitted, old_time, old_value)
