-- A key's own counts, as `sluice set` has written them: "N[,N...]", one for
-- each rate of the limit. In a record's kind it is 32, and what follows the
-- record and the law's (see wide.lua) is a byte, which of them is the check's,
-- and a double, the N that it has else. The own counts' key stands behind
-- that of the count.
local OWN_FORMAT = '<Bd'
local OWN_SIZE = 9
local LOG_MAX = 10000 -- units of a sliding log, one entry each

local function own_count(text, which)
	for number in string.gmatch(text, '[^,]+') do
		if which == 0 then
			local count = tonumber(number)
			return count and count % 1 == 0 and count >= 1 and
				count <= MAX and count
		end
		which = which - 1
	end
end

local function gcd(a, b)
	while b > 0 do
		a, b = b, a % b
	end
	return a
end

-- The bucket of another N: its terms, and the burst in proportion.
local function own_bucket(count, preset, p, q, s)
	local period = q * (preset / p)
	local divisor = gcd(count, period)
	local rest = s % preset
	local burst = (s - rest) / preset * count +
		mul_div(rest, count, preset)
	p, q = count / divisor, period / divisor
	local most = (MAX - MAX % q) / q
	burst = burst < 1 and 1 or burst < most and burst or most
	return count, p, q, burst
end

-- text: of the own counts; at: where what a check says of them stands.
-- Returns the count, then p, q and s of the check; false for the count: there
-- is no such one.
local function own(text, records, at, kind, p, q, s)
	local which, preset = unpack_bytes(OWN_FORMAT, records, at)
	local count = own_count(text, which)
	if not count then
		return false, p, q, s
	end
	local law = kind % FIRST
	if law == 2 or law == 4 then
		return own_bucket(count, preset, p, q, s)
	elseif law == 0 and count > (MAX - MAX % q) / q then
		count = (MAX - MAX % q) / q
	elseif law == 3 and count > LOG_MAX then
		count = LOG_MAX
	end
	return count, count, q, s
end

-- nil: there are none.
local function get_own(own_key)
	local text = try('GET', own_key)
	return type(text) == 'string' and text or nil
end

-- What stands at a key and the text of its own counts, in one call where
-- that is enough: MGET does not tell a key of another type from none, and a
-- user may not have it.
local function get_both(key, own_key)
	local both = try('MGET', key, own_key)
	if both.err then
		return try('GET', key), get_own(own_key)
	end
	return both[1] or try('GET', key), both[2]
end
