-- Decides all rules of one request where decide_one.lua and decide_several.lua don't know
-- some of them. Keys, arguments, counters and reply are those of decide_several.lua, with
--
--          kind 1, fixed window: max, length in us, units asked for, anchor, 0
--                                (anchor 1: multiples of the length, 2: calendar months)
--          kind 2, token bucket: as there
--          kind 3, sliding counter: max, length in us, units asked for, 0, 0
--
-- Products of a counter have 75 bits, so that they are compared in two parts: what is a
-- multiple of 2^23, and the rest; a double holds either exactly, since units stay below
-- 2^30 and lengths below 2^45.
local floor, pack = math.floor, struct.pack
local a = {struct.unpack(ARGV[1], ARGV[2])}
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local found = redis.call('MGET', unpack(KEYS))
local admitted, at = 1, 1
local reply, new, last = {a[1], now, 1}, {}, {}

for i = 1, #KEYS do
    local kind, p1, p2, p3, p4, p5 =
        a[at + 1], a[at + 3], a[at + 4], a[at + 5], a[at + 6], a[at + 7]
    local time, value = 0, 0
    if found[i] and #found[i] == 16 then
        time, value = struct.unpack('<dd', found[i])
        if not (time >= 0 and time < 2^53 and value >= 0 and value < 2^32)
            or time % 1 ~= 0 or value % 1 ~= 0 then
            time, value = 0, 0
        end
    end
    reply[2 * i + 2], reply[2 * i + 3] = time, value

    if kind == 1 then
        local latest = now + p2
        if p4 == 1 then
            latest = latest - now % p2
        elseif p4 == 2 then
            -- As lib/limit/calendar.c.
            local day = floor(now / 86400000000)
            local of = (day + 719468) % 146097
            local year =
                floor((of - floor(of / 1460) + floor(of / 36524) - floor(of / 146096)) / 365)
            of = of - 365 * year - floor(year / 4) + floor(year / 100)
            local month = floor((5 * of + 2) / 153)
            local ends = floor((153 * month + 155) / 5)
            if month == 11 then
                year = year + 1
                ends = (year == 400 or (year % 4 == 0 and year % 100 ~= 0)) and 366 or 365
            end
            latest = (day + ends - of) * 86400000000
        end
        if time <= now then
            time, value = latest, 0
        elseif time > latest then
            time = latest
        end
        value = value + p3
        if value > p1 then
            admitted = 0
        end
        last[i] = time
    elseif kind == 3 then
        local most, gone = math.min(10^9, p2 - 1), now % p2
        local before, units = time % p2, math.min(value, most)
        local ahead = time - before - 2 * p2 - now + gone
        before = math.min(before, most)
        if time == 0 or ahead < -p2 then
            before, units = 0, 0
        elseif ahead < 0 then
            before, units = units, 0
        elseif ahead > 0 then
            before, units = math.max(before, units), 0
        end
        local left, room = p2 - gone, p1 - units - p3
        local left_low, p2_low = left % 2^23, p2 % 2^23
        if room < 0 or before * (left - left_low) - room * (p2 - p2_low)
            > room * p2_low - before * left_low then
            admitted = 0
        end
        last[i] = now - gone + 2 * p2
        time, value = last[i] + before, units + p3
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
        last[i] = time
    end
    new[2 * i - 1], new[2 * i] = time, value
    at = at + 7
end

reply[3] = admitted
if admitted == 1 then
    for i = 1, #KEYS do
        if a[7 * i - 4] == 1 then
            redis.call('SET', KEYS[i], pack('<dd', new[2 * i - 1], new[2 * i]),
                       'PX', math.ceil((last[i] + 1 - now) / 1000))
        end
    end
end
return pack('<' .. string.rep('d', #reply), unpack(reply))
