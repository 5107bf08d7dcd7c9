-- Gives back what allowed requests took: to the window that holds it, if
-- that still lasts.
--
-- KEYS     the keys of all checks, in order
-- ARGV[1]  for each request: a byte, its number of checks, a double, when
--          they were allowed (us), then a record (see laws.lua) for each
--
-- Returns how many checks got something back.
--@include now.lua
--@include laws.lua

-- Each: the counts after it, or nil for nothing to give back.
local function refund_fixed(value, _, q, r, _, taken, t)
	local a, b = unpack_bytes('<dd', value)
	if taken >= a and t < a + q then
		return a, b > r and b - r or 0, 0
	end
end

local function refund_sliding(value, _, q, r, s, taken, t)
	local a, b, c = unpack_bytes('<ddd', value)
	local ms = (taken - taken % 1000) / 1000
	local start = ms - (ms - s) % q
	if t >= (a + 2 * q) * 1000 then
		return nil
	elseif start == a then
		return a, b > r and b - r or 0, c
	elseif start == a - q then
		return a, b, c > r and c - r or 0
	end
end

-- What flowed in since may have found the bucket full, had the cost not
-- been taken; as nobody knows, that much is not given back.
local function refund_bucket(_, p, q, r, s, taken, t, b)
	local back = (r < s and r or s) * q
	local elapsed = t > taken and t - taken or 0
	if elapsed >= ceil_div(back, p) then
		return nil
	end
	back = back - p * elapsed
	if back < s * q - b then
		return t, b + back, q
	end
	return t, s * q, q
end

local function end_of_window(law, q, a)
	if law == fixed then
		return ceil_div(a + q, 1000)
	end
	return a + 2 * q
end

local REFUNDS = {
	[fixed] = refund_fixed,
	[sliding] = refund_sliding,
	[bucket] = refund_bucket,
}

-- Keeps what is left; a count that is untouched is no key.
local function keep(key, law, p, q, s, t, a, b, c)
	local end_ms
	if law == bucket then
		if b == s * q then
			return redis.call('DEL', key)
		end
		end_ms = ceil_div(t + ceil_div(s * q - b, p), 1000)
	elseif b == 0 and c == 0 then
		return redis.call('DEL', key)
	else
		end_ms = end_of_window(law, q, a)
	end
	write(key, pack_bytes(law.format, a, b, c), end_ms)
end

local function refund(key, records, at, taken)
	local kind, p, q, r, s = unpack_bytes(RECORD, records, at)
	local law = LAWS[kind % 4]
	local value = try('GET', key)
	if not value or r == 0 then
		return 0
	elseif #value ~= law.size then
		foreign(value)
		return 0
	end
	local wait, t, _, now_left = law.evaluate(value, kind, p, q, 0, s)
	if wait == NO_STATE then
		return 0
	end
	local a, b, c = REFUNDS[law](value, p, q, r, s, taken, t, now_left)
	if a == nil then
		return 0
	end
	keep(key, law, p, q, s, t, a, b, c)
	return 1
end

local records = ARGV[1]
local at, key, given = 1, 0, 0
while at <= #records do
	local n, taken = unpack_bytes('<Bd', records, at)
	at = at + 9
	for _ = 1, n do
		key = key + 1
		given = given + refund(KEYS[key], records, at, taken)
		at = at + RECORD_SIZE
	end
end
return given
