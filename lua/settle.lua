-- Settles what allowed requests took: in the window that holds it, if that
-- still lasts; else a charge goes to the current one, and what would be given
-- back is dropped. src/pure/settlement.c in Lua.
--
-- KEYS     the keys of all checks, in order
-- ARGV[1]  for each request: a byte, its number of checks, a double, when
--          they were allowed (us), then for each check a record (see
--          laws.lua and wide.lua), whose cost is charged, or given back
--          where it is below 0; no penalties. Behind the record of a token
--          bucket stands a double, in how many us it would have been full
--          after the check; a leaky bucket has that for its longest delay.
--
-- Returns a double as 8 bytes for each check: the units that were cut off a
-- charge; -1: the store could not take it.
--@include now.lua
--@include laws.lua
--@include own.lua
--@include sets.lua
--@include wide.lua
local LOST = -1

-- How far a count may go: its limit beyond its limit.
local function ceiling(limit)
	return limit > MAX / 2 and MAX or 2 * limit
end

-- As much of r as there is room for.
local function within(r, room)
	return room < 0 and 0 or r < room and r or room
end

-- What a cost given back (back: in units * P) still makes a bucket lack, or
-- less than 0. Without it the bucket would have been full that much earlier,
-- and from then on nothing would have flowed in: so much has been made good
-- in the time elapsed. After the cost it lacked more than full - 1 of its
-- rate p, and no less than the cost.
local function still_lacking(back, p, full, elapsed)
	local lacks = p * (full - 1 - elapsed) + 1
	local of_cost = back - p * elapsed
	if lacks < of_cost then
		lacks = of_cost
	end
	return lacks < back and lacks or back
end
--@include settle_wide.lua

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

-- Each: the counts after it, and how many units of r were charged.
local function charge_fixed(p, _, r, _, _, a, b)
	local charged = within(r, ceiling(p) - b)
	return a, b + charged, 0, charged
end

-- c * left + b * q is to stay within the ceiling * q.
local function charge_sliding(p, q, r, s, taken, a, b, c, left)
	local top = ceiling(p)
	local ms = (taken - taken % 1000) / 1000
	if ms - (ms - s) % q ~= a - q then
		local faded = mul_div(q - left, c, q)
		local charged = within(r, top - c - b + faded)
		return a, b + charged, c, charged
	end
	local rest = q % left
	local room = top - b
	if room > 0 and room * ((q - rest) / left) < top then
		room = room * ((q - rest) / left) + mul_div(rest, room, left)
	elseif room > 0 then
		room = top
	end
	local charged = within(r, (room < top and room or top) - c)
	return a, b, c + charged, charged
end

local function charge_bucket(_, q, r, s, _, a, b)
	local full = s * q
	-- What a cost then lacks is to be exact too.
	local room = b + (full < MAX - full and full or MAX - full)
	local charged = within(r, (room - room % q) / q)
	return a, b - charged * q, q, charged
end

local function refund_bucket(_, p, q, r, s, taken, t, b, full)
	local back = still_lacking((r < s and r or s) * q, p, full,
		t > taken and t - taken or 0)
	if back <= 0 then
		return nil
	elseif back < s * q - b then
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

local CHARGES = {
	[fixed] = charge_fixed,
	[sliding] = charge_sliding,
	[bucket] = charge_bucket,
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

-- Returns how many units were cut. full: of a bucket.
local function settle(key, taken, kind, p, q, r, s, own_key, own_at, full)
	local law = LAWS[kind % FIRST]
	local value, text, _
	if own_key then
		value, text = get_both(key, own_key)
	else
		value = try('GET', key)
	end
	if text then
		_, p, q, s = own(text, ARGV[1], own_at, kind, p, q, s)
	end
	if r == 0 or not value and r < 0 then
		return 0
	elseif value and #value ~= law.size then
		foreign(value)
		return LOST
	end
	local wait, t, a, b, c, d = law.evaluate(value, kind, p, q, 0, s)
	local charged
	if wait == NO_STATE then
		return LOST
	elseif r > 0 then
		a, b, c, charged = CHARGES[law](p, q, r, s, taken, a, b, c, d)
	else
		a, b, c = REFUNDS[law](value, p, q, -r, s, taken, t, b,
			full)
		charged = r
	end
	if a and charged ~= 0 then
		keep(key, law, p, q, s, t, a, b, c)
	end
	return r - charged
end

local records = ARGV[1]
local at, key, cut = 1, 0, {}
local wide, settle_wide
while at <= #records do
	local n, taken = unpack_bytes('<Bd', records, at)
	at = at + 9
	for _ = 1, n do
		local kind, p, q, r, s = unpack_bytes(RECORD, records, at)
		local ok, units, k, full
		if kind % FIRST < WIDE then
			local own_key = kind >= OWN and KEYS[key + 2]
			at = at + RECORD_SIZE
			if LAWS[kind % FIRST] == bucket then
				full, at = unpack_bytes('<d', records, at)
			end
			ok, units = pcall(settle, KEYS[key + 1], taken, kind,
				p, q, r, s, own_key, at, full)
			key = key + (own_key and 2 or 1)
			at = at + (own_key and OWN_SIZE or 0)
		else
			wide = wide or make_wide()
			settle_wide = settle_wide or make_settle_wide()
			k, at, key = wide.read(records, at, key)
			ok, units = pcall(settle_wide[kind % FIRST], k, taken)
		end
		cut[#cut + 1] = pack_bytes('<d', ok and units or LOST)
	end
end
return table.concat(cut)
