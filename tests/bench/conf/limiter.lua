-- What the limiters that Sluice is compared with ask Redis: a sliding window
-- of two buckets, as short as it can be written.
-- KEYS[1]; ARGV: limit, width in ms. Returns allowed, remaining, reset (s).
local t = redis.call('TIME')
local now = t[1] * 1000 + (t[2] - t[2] % 1000) / 1000
local limit, width = tonumber(ARGV[1]), tonumber(ARGV[2])
local elapsed = now % width
local number = (now - elapsed) / width
local key = KEYS[1] .. ':' .. number
local both = redis.call('MGET', key, KEYS[1] .. ':' .. number - 1)
local used = (both[1] or 0) +
	math.ceil((both[2] or 0) * (width - elapsed) / width)
local reset = math.ceil((width - elapsed) / 1000)
if used >= limit then
	return { 0, 0, reset }
end
if redis.call('INCR', key) == 1 then
	redis.call('PEXPIRE', key, 2 * width)
end
return { 1, limit - used - 1, reset }
