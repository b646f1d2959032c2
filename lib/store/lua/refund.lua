-- Gives back what a decision took, with the arithmetic of weir__limit_refund().
--
-- KEYS     a counter for each rule that was charged
-- ARGV[1]  the format of ARGV[2]: little-endian doubles, 1 and 8 for each rule
-- ARGV[2]  the nonce, then for each rule: kind, the counter right after the charge (time,
--          value), and
--          kind 1, fixed window: the units charged, 0, 0, 0, 0
--          kind 3, sliding counter: the units charged, its length in us, 0, 0, 0
--          kind 2, token bucket: what was charged as time, in us and N-ths of one; the time
--                                to fill the bucket, likewise; N
-- The reply is the nonce.
local a = {struct.unpack(ARGV[1], ARGV[2])}
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- The time until a bucket is full, in us and N-ths.
local function debt(time, value, fill, fill_part, parts)
    local span, part = time - now, value
    if span < 0 then
        return 0, 0
    end
    if part >= parts then
        span, part = span + 1, 0
    end
    if span > fill or (span == fill and part > fill_part) then
        return fill, fill_part
    end
    return span, part
end

local found = redis.call('MGET', unpack(KEYS))
local at = 1
for i = 1, #KEYS do
    local time, value = 0, 0
    if found[i] and #found[i] == 16 then
        time, value = struct.unpack('<dd', found[i])
    end
    if not (time > 0 and time < 2^53 and value >= 0 and value < 2^32) then
        time = 0
    elseif a[at + 1] == 1 then
        value = math.max(0, value - a[at + 4])
        if time ~= a[at + 2] or time <= now then
            time = 0
        end
    elseif a[at + 1] == 3 then
        local length, gone = a[at + 5], now % a[at + 5]
        local open = (now - gone) / length + 2
        local window, own = math.floor(a[at + 2] / length), math.floor(time / length)
        local before, units = time % length, value
        if own == open - 1 then
            before, units = value, 0
        end
        if window == open and own == open then
            units = math.max(0, units - a[at + 4])
        elseif window == open - 1 and own >= window and own <= open then
            before = math.max(0, before - a[at + 4])
        else
            open = 0
        end
        time, value = open * length + before, units
        if open > 0 and before == 0 and units == 0 then
            redis.call('DEL', KEYS[i])
            time = 0
        end
    else
        local back, back_part = a[at + 4], a[at + 5]
        local fill, fill_part, parts = a[at + 6], a[at + 7], a[at + 8]
        local span, part = debt(time, value, fill, fill_part, parts)
        local left, left_part = debt(a[at + 2], a[at + 3], fill, fill_part, parts)
        if back > left or (back == left and back_part > left_part) then
            back, back_part = left, left_part
        end
        span, part = span - back, part - back_part
        if part < 0 then
            span, part = span - 1, part + parts
        end
        if span < 0 or (span == 0 and part == 0) then
            redis.call('DEL', KEYS[i])
            time = 0
        else
            time, value = now + span, part
        end
    end
    if time > now then
        redis.call('SET', KEYS[i], struct.pack('<dd', time, value),
                   'PX', math.ceil((time + 1 - now) / 1000))
    end
    at = at + 8
end
return struct.pack('<d', a[1])
