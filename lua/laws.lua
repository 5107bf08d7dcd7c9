-- The arithmetic of limits: src/pure/algorithm.c in Lua, step by step.
-- Every number is a whole one below 2^53, so doubles are exact. So is the
-- floor of a / b: it is at least 1/b away from the next whole number, which
-- is more than rounding the quotient can move it. And so is Lua's a % b,
-- which is a - floor(a / b) * b.
--
-- A call of a Lua function costs Redis as much as a whole INCR, so what
-- runs for every check is written out rather than divided up.
--
-- A check is a record: a byte, its kind, then four doubles, p to s. The kind
-- is a law (0 to 7), 8 for a fixed window that starts with its first hit, 16
-- for an observed one. Where it says that there is more (see own.lua and
-- wide.lua), that follows the record, and the check has more than one key.
-- 128: a lease, and a double after all else: where the cost passes so many
-- units are taken at the most, as far as they remain.
--	0 sliding window  limit, width, cost, offset (ms)
--	1 fixed window    limit, width, cost, offset (us)
--	2 token bucket    units R, period P (us; lowest terms), cost, burst
local RECORD = '<Bdddd'
local RECORD_SIZE = 33
local MAX = 9007199254740991
local NEVER, NO_STATE = -1, -2
local FIRST, OBSERVE, OWN, PENALTY, LEASE = 8, 16, 32, 64, 128
-- The first law that is not plain.
local WIDE = 3

local pack_bytes, unpack_bytes = struct.pack, struct.unpack
local try = redis.pcall

local now = now_us()
local now_ms = (now - now % 1000) / 1000

local function ceil_div(a, b)
	local rest = a % b
	if rest > 0 then
		return (a - rest) / b + 1
	end
	return a / b
end

-- Each law has a format and size of what is kept, and two functions:
--
-- evaluate(value, kind, p, q, r, s): wait, t, a, b, c, d
--	How long the cost r has to wait (0: it passes now; 0 for no cost)
--	and how the count stands: t is now, but never before what was seen,
--	a, b, c what would be kept. NO_STATE: no law has written this value
--	(it holds NaN, a fraction, a negative number).
-- tell(p, q, s, t, a, b, c, d): remaining, next, full, end
--	The figures of a count that stands so; the end in ms, rounded up.

-- a: window start, b: units taken
local fixed = { format = '<dd', size = 16 }

function fixed.evaluate(value, kind, limit, width, cost, offset)
	local t, a, b = now, nil, 0
	if value then
		local start, used = unpack_bytes('<dd', value)
		if not (start % 1 + used % 1 == 0 and start >= 0 and
			used >= 0 and start <= MAX and used <= MAX) then
			return NO_STATE
		end
		if t < start then
			t = start
		end
		-- One that was begun runs to its end.
		if t < start + width then
			a, b = start, used
		end
	end
	if a == nil then
		a = t
		if kind % OBSERVE < FIRST then
			a = t - (t - offset) % width
		end
	end
	if cost == 0 or b <= limit - cost then
		return 0, t, a, b, 0
	elseif cost > limit then
		return NEVER, t, a, b, 0
	end
	return a + width - t, t, a, b, 0
end

function fixed.tell(limit, width, _, t, a, b)
	local full = 0
	if b > 0 then
		full = a + width - t
	end
	local remaining = limit - b
	if remaining < 0 then
		remaining = 0
	end
	return remaining, full, full, ceil_div(a + width, 1000)
end

-- a: bucket start (ms), b: units in it, c: units in the bucket before
-- d: ms left of the bucket
local sliding = { format = '<ddd', size = 24 }

local function sliding_wait(cost, limit, width, t, b, c, left)
	local room = (limit - cost - b) * width
	local ms
	if room < 0 then
		local kept = (limit - cost) * width
		ms = left + width - (kept - kept % b) / b
	elseif c * left <= room then
		return 0
	else
		ms = left - (room - room % c) / c
	end
	return ms * 1000 - t % 1000
end

function sliding.evaluate(value, _, limit, width, cost, offset)
	local t, ms, b, c = now, now_ms, 0, 0
	local elapsed = (ms - offset) % width
	if value then
		local start, used, before = unpack_bytes('<ddd', value)
		if not (start % 1 + used % 1 + before % 1 == 0 and
			start >= 0 and used >= 0 and before >= 0 and
			start <= MAX and used <= MAX and before <= MAX) then
			return NO_STATE
		end
		if ms < start then
			ms = start
			t = start * 1000
			elapsed = (ms - offset) % width
		end
		if ms - elapsed <= start then
			b, c = used, before
		elseif ms - elapsed - start <= width then
			c = used
		end
	end
	local left = width - elapsed
	if cost == 0 then
		return 0, t, ms - elapsed, b, c, left
	elseif cost > limit then
		return NEVER, t, ms - elapsed, b, c, left
	end
	return sliding_wait(cost, limit, width, t, b, c, left), t,
		ms - elapsed, b, c, left
end

function sliding.tell(limit, width, _, t, a, b, c, left)
	local room = (limit - b) * width - c * left
	local remaining, next, full = 0, 0, 0
	if room > 0 then
		remaining = (room - room % width) / width
	end
	if remaining < limit then
		next = sliding_wait(remaining + 1, limit, width, t, b, c, left)
	end
	if b > 0 then
		full = (left + width) * 1000 - t % 1000
	elseif c > 0 then
		full = left * 1000 - t % 1000
	end
	return remaining, next, full, a + 2 * width
end

-- a: time, b: tokens * P, c: P
local bucket = { format = '<ddd', size = 24 }

-- floor(r * x / y) for r < y, a bit of x at a time: r * x may be beyond
-- 2^53.
local function mul_div(r, x, y)
	local bit = 1
	while bit * 2 <= x do
		bit = bit * 2
	end
	local quotient, rest = 0, 0
	while bit >= 1 do
		quotient, rest = quotient * 2, rest * 2
		if x >= bit then
			x = x - bit
			rest = rest + r
		end
		while rest >= y do
			rest = rest - y
			quotient = quotient + 1
		end
		bit = bit / 2
	end
	return quotient
end

-- N changed: tokens * `from` become tokens * `to`, never rounded up.
local function convert_tokens(b, from, to, burst)
	local tokens = (b - b % from) / from
	if tokens >= burst then
		return burst * to
	elseif tokens < -burst then
		return -burst * to
	end
	return tokens * to + mul_div(b - tokens * from, to, from)
end

function bucket.evaluate(value, _, units, period, cost, burst)
	local t, full = now, burst * period
	local b = full
	if value then
		local seen, tokens, terms = unpack_bytes('<ddd', value)
		if not (seen % 1 + tokens % 1 + terms % 1 == 0 and
			seen >= 0 and tokens >= -MAX and terms >= 1 and
			seen <= MAX and tokens <= MAX and terms <= MAX) then
			return NO_STATE
		end
		if t < seen then
			t = seen
		end
		b = tokens
		if terms ~= period then
			b = convert_tokens(tokens, terms, period, burst)
		end
		if b > full then
			b = full
		elseif b < full - MAX then
			b = full - MAX
		end
		if t - seen < ceil_div(full - b, units) then
			b = b + units * (t - seen)
		else
			b = full
		end
	end
	if cost > burst then
		return NEVER, t, t, b, period
	end
	local missing = cost * period - b
	if missing > 0 and cost > 0 then
		return ceil_div(missing, units), t, t, b, period
	end
	return 0, t, t, b, period
end

function bucket.tell(units, period, burst, t, _, b)
	local rest = b % period
	local remaining, next, full = (b - rest) / period, 0, 0
	if b < 0 then
		remaining, rest = 0, b
	end
	if remaining < burst then
		next = ceil_div(period - rest, units)
		full = ceil_div(burst * period - b, units)
	end
	return remaining, next, full, ceil_div(t + full, 1000)
end

local LAWS = { [0] = sliding, [1] = fixed, [2] = bucket }

-- NO_STATE for a value that is of another type or length than a law's; an
-- error of any other kind is the whole request's.
local function foreign(value)
	if type(value) == 'table' and
		not string.find(value.err, 'WRONGTYPE', 1, true) then
		error(value, 0)
	end
	return NO_STATE
end

-- For what has to work: an error is the whole request's.
local function must(...)
	local r = try(...)
	if type(r) == 'table' and r.err then
		error(r, 0)
	end
	return r
end

-- A key goes a millisecond after its end.
local function write(key, value, end_ms)
	local r = try('SET', key, value, 'PX', end_ms + 1 - now_ms)
	if r.err then
		error(r, 0)
	end
end

-- For a key that is not written now. Without a TTL it would never go (a
-- stranger's PERSIST), and tokens that were taken by a larger N would be back
-- before they are by this one.
local function give_ttl(key, end_ms, of_tokens)
	local left = redis.call('PTTL', key)
	if left == -1 or
		of_tokens and left >= 0 and left < end_ms - now_ms then
		redis.call('PEXPIRE', key, end_ms + 1 - now_ms)
	end
end
