-- Laws and checks that need more than a record and one value. All of it is
-- made only when a call meets such a check, as making it costs something.
--
-- The laws, and what follows the record:
--	3 sliding log    limit, width (us), cost, 0
--	4 leaky bucket   units R, period P, cost, burst; a double: the longest
--	                 delay (settle.lua has another there)
--	5 concurrency    limit, 0, cost, 0; a byte, the length of the slot's
--	                 name, and the name
--	6 calendar       limit, the first of four boundaries (us), cost, the
--	                 second; two doubles: the others
-- Then what own.lua says, and if the kind says so (64), a double: the penalty.
-- Its key is the last of the check's. What a lease takes stands last of all.
--
-- A check is a table here: key, kind, p to s and what follows by name. Laws
-- add what they find: t is now, but never before what was seen. Each has
--
-- read(k, records, at): reads what follows the record; the place behind it
-- stand(k): how the count stands; NO_STATE: no law has written it
-- look(k): that, and how long the cost has to wait, as in laws.lua
-- take(k): takes the cost, in the table alone
-- tell(k): remaining, next, full, end
-- write(k, end_ms): keeps what the table says
local function make_wide()
	-- The three numbers of a value; nil: there is none; NO_STATE alone:
	-- no law has written it.
	local function three(key)
		local value = try('GET', key)
		if not value then
			return nil
		elseif #value ~= 24 then
			return foreign(value)
		end
		local x, y, z = unpack_bytes('<ddd', value)
		if x % 1 + y % 1 + z % 1 == 0 and x >= 0 and y >= 0 and
			z >= 1 and x <= MAX and y <= MAX and z <= MAX then
			return x, y, z
		end
		return NO_STATE
	end

	local function write_three(key, x, y, z, end_ms)
		write(key, pack_bytes('<ddd', x, y, z), end_ms)
	end

	-- The laws of laws.lua
	local plain = {}

	function plain.read(_, _, at)
		return at
	end

	function plain.look(k)
		local value = try('GET', k.key)
		local wait
		if value and #value ~= k.base.size then
			return foreign(value)
		end
		wait, k.t, k.a, k.b, k.c, k.d = k.base.evaluate(value, k.kind,
			k.p, k.q, k.r, k.s)
		return wait
	end

	function plain.take(k)
		k.b = k.b + (k.base == bucket and -k.r * k.q or k.r)
	end

	function plain.tell(k)
		return k.base.tell(k.p, k.q, k.s, k.t, k.a, k.b, k.c, k.d)
	end

	function plain.write(k, end_ms)
		write(k.key, pack_bytes(k.base.format, k.a, k.b, k.c), end_ms)
	end

	-- a: window start, b: units taken, c: its end
	local calendar = {}

	function calendar.read(k, records, at)
		k.third, k.fourth, at = unpack_bytes('<dd', records, at)
		return at
	end

	-- Beyond the boundaries windows go on, as long as the nearest.
	local function calendar_window(k, t)
		local low, high = k.q, k.s
		if t >= k.third then
			low, high = k.third, k.fourth
		elseif t >= k.s then
			low, high = k.s, k.third
		end
		local start = t - (t - low) % (high - low)
		return start, start + high - low
	end

	function calendar.stand(k)
		local start, used, finish = three(k.key)
		if start == NO_STATE then
			return NO_STATE
		end
		k.t = start and start > now and start or now
		if start and k.t < finish then
			k.a, k.b, k.c = start, used, finish
		else
			k.b = 0
			k.a, k.c = calendar_window(k, k.t)
		end
		return 0
	end

	function calendar.look(k)
		if calendar.stand(k) == NO_STATE then
			return NO_STATE
		elseif k.r == 0 or k.b <= k.p - k.r then
			return 0
		end
		return k.r > k.p and NEVER or k.c - k.t
	end

	function calendar.take(k)
		k.b = k.b + k.r
	end

	function calendar.tell(k)
		local full = k.b > 0 and k.c - k.t or 0
		return k.p > k.b and k.p - k.b or 0, full, full,
			ceil_div(k.c, 1000)
	end

	function calendar.write(k, end_ms)
		write_three(k.key, k.a, k.b, k.c, end_ms)
	end

	-- Kept: time, x = queued units * P, P
	local leaky = {}

	function leaky.read(k, records, at)
		k.delay_max, at = unpack_bytes('<d', records, at)
		return at
	end

	-- N changed: units * `from` become units * `to`, never rounded down.
	local function convert_queue(x, from, to)
		local rest = x % from
		local part = to - mul_div(from - rest, to, from)
		local units = (x - rest) / from
		if units > (MAX - part - (MAX - part) % to) / to then
			return MAX
		end
		return units * to + part
	end

	function leaky.stand(k)
		local seen, x, terms = three(k.key)
		k.t, k.x = now, 0
		if not seen or seen == NO_STATE then
			return seen
		elseif terms ~= k.q then
			x = convert_queue(x, terms, k.q)
		end
		if k.t < seen then
			k.t = seen
		end
		if k.t - seen < ceil_div(x, k.p) then
			k.x = x - k.p * (k.t - seen)
		end
		return 0
	end

	function leaky.look(k)
		if leaky.stand(k) == NO_STATE then
			return NO_STATE
		elseif k.r == 0 then
			return 0
		elseif k.r > k.s then
			return NEVER
		end
		k.delay = ceil_div(k.x, k.p)
		local over = k.x - (k.s - k.r) * k.q
		local wait = over > 0 and ceil_div(over, k.p) or 0
		if k.delay - k.delay_max > wait then
			wait = k.delay - k.delay_max
		end
		return wait
	end

	function leaky.take(k)
		k.x = k.x + k.r * k.q
	end

	-- reach: what is worked off within the longest delay, at most the
	-- whole bucket.
	function leaky.tell(k)
		local size = k.s * k.q
		local reach = size
		if k.delay_max <= (size - 1 - (size - 1) % k.p) / k.p then
			reach = k.p * k.delay_max
		end
		local busy = ceil_div(k.x, k.p)
		local end_ms = ceil_div(k.t + busy, 1000)
		local left = 0
		k.limit = (reach - reach % k.q) / k.q + 1
		if k.limit > k.s then
			k.limit = k.s
		end
		if k.x <= reach then
			left = (reach - k.x - (reach - k.x) % k.q) / k.q + 1
			local room = size - k.x
			if left > (room - room % k.q) / k.q then
				left = (room - room % k.q) / k.q
			end
		end
		if left >= k.limit then
			return left, 0, 0, end_ms
		end
		local target = reach - left * k.q
		if target > size - (left + 1) * k.q then
			target = size - (left + 1) * k.q
		end
		return left, ceil_div(k.x - target, k.p), busy, end_ms
	end

	function leaky.write(k, end_ms)
		write_three(k.key, k.t, k.x, k.q, end_ms)
	end

	local log, slots = make_sets()
	local laws = { [0] = plain, plain, plain, log, leaky, slots, calendar }
	local wide = {}

	local function read_own(k, records, at)
		local text = get_own(k.own_key)
		if text then
			k.count, k.p, k.q, k.s = own(text, records, at,
				k.kind, k.p, k.q, k.s)
		end
	end

	-- The check whose record begins at `at` and whose first key is that
	-- after `key`; where the next begins, and its last key.
	function wide.read(records, at, key)
		local k = { key = KEYS[key + 1] }
		k.kind, k.p, k.q, k.r, k.s, at =
			unpack_bytes(RECORD, records, at)
		k.base = LAWS[k.kind % 8]
		k.law = laws[k.kind % 8]
		at = k.law.read(k, records, at)
		key = key + 1
		if k.kind % (2 * OWN) >= OWN then
			key = key + 1
			k.own_key = KEYS[key]
			read_own(k, records, at)
			at = at + OWN_SIZE
		end
		if k.kind % LEASE >= PENALTY then
			k.penalty, at = unpack_bytes('<d', records, at)
			key = key + 1
			k.penalty_key = KEYS[key]
		end
		if k.kind >= LEASE then
			k.most, at = unpack_bytes('<d', records, at)
		end
		return k, at, key
	end

	-- left: how long the key is still refused, whatever its count.
	local function look_at_penalty(k)
		local value = try('GET', k.penalty_key)
		k.left = 0
		if value then
			if #value ~= 8 then
				k.wait = foreign(value)
				return
			end
			k.begun = unpack_bytes('<d', value)
			if not (k.begun % 1 == 0 and k.begun >= 0) then
				k.wait = NO_STATE
				return
			elseif k.begun > now then
				k.left = k.penalty
			elseif now - k.begun < k.penalty then
				k.left = k.begun + k.penalty - now
			end
		end
		if k.left == 0 and k.wait ~= 0 then
			k.begins = true
			k.left = k.penalty
		end
		if k.r > 0 and k.wait ~= NEVER and k.wait < k.left then
			k.wait = k.left
		end
	end

	function wide.look(k)
		k.wait = k.law.look(k)
		if k.penalty and k.wait ~= NO_STATE then
			look_at_penalty(k)
		end
	end

	local function keep_penalty(k)
		if k.begins then
			write(k.penalty_key, pack_bytes('<d', now),
				ceil_div(now + k.penalty, 1000))
		elseif k.begun then
			give_ttl(k.penalty_key,
				ceil_div(k.begun + k.penalty, 1000))
		end
	end

	-- Takes the cost if `take`; the figures, packed.
	function wide.conclude(k, take)
		local law = k.law
		take = take and k.wait == 0 and k.r > 0
		if take and k.most then
			local left = law.tell(k)
			k.r = left < k.most and left or k.most
		end
		if take then
			law.take(k)
		end
		local remaining, next, full, end_ms = law.tell(k)
		if take then
			law.write(k, end_ms)
		elseif k.r > 0 then
			give_ttl(k.key, end_ms, k.base == bucket)
		end
		if k.penalty and k.r > 0 then
			keep_penalty(k)
		end
		if k.penalty and k.left > 0 then
			next = remaining == 0 and next > k.left and next or k.left
			full = full > k.left and full or k.left
			remaining = 0
		end
		local delay = take and k.delay or 0
		local limit = k.limit or k.base == bucket and k.s or k.p
		local count = k.count or 0
		if k.most then
			return pack_bytes('<dddddddd', k.wait, remaining, next,
				full, delay, limit, count, take and k.r or 0)
		elseif k.penalty and (k.count or k.limit) then
			return pack_bytes('<dddddddd', k.wait, remaining, next,
				full, delay, limit, count, k.left)
		elseif k.penalty then
			return pack_bytes('<ddddd', k.wait, remaining, next,
				full, k.left)
		elseif k.count then
			return pack_bytes('<ddddddd', k.wait, remaining, next,
				full, delay, limit, k.count)
		elseif k.limit then
			return pack_bytes('<dddddd', k.wait, remaining, next,
				full, delay, k.limit)
		end
		return pack_bytes('<dddd', k.wait, remaining, next, full)
	end

	return wide
end
