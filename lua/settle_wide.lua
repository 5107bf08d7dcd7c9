-- How the laws of wide.lua are settled: k.r is charged, or given back where
-- it is below 0. Each returns the units that were cut off a charge; nil: the
-- store could not take it.

local function make_settle_wide()
	local function drop_or_write(k, is_empty)
		if is_empty then
			must('DEL', k.key)
		else
			local _, _, _, end_ms = k.law.tell(k)
			k.law.write(k, end_ms)
		end
	end

	local function calendar(k, taken)
		local charged = k.r
		if k.law.stand(k) == NO_STATE then
			return nil
		elseif k.r > 0 then
			charged = within(k.r, ceiling(k.p) - k.b)
			k.b = k.b + charged
		elseif k.b == 0 or taken < k.a then
			return 0
		else
			k.b = k.b > -k.r and k.b + k.r or 0
		end
		if charged ~= 0 then
			drop_or_write(k, k.b == 0)
		end
		return k.r - charged
	end

	-- delay_max: here, in what time it would have been empty.
	local function leaky_refund(k, taken)
		local back = still_lacking((-k.r < k.s and -k.r or k.s) * k.q,
			k.p, k.delay_max, k.t > taken and k.t - taken or 0)
		if k.x == 0 or back <= 0 then
			return 0
		end
		k.x = k.x - back
		drop_or_write(k, k.x <= 0)
		return 0
	end

	local function leaky(k, taken)
		if k.law.stand(k) == NO_STATE then
			return nil
		elseif k.r < 0 then
			return leaky_refund(k, taken)
		end
		local size = k.s * k.q
		-- What a cost then has to wait for is to be exact too.
		local room = size + (size < MAX - size and size or MAX - size) -
			k.x
		local charged = within(k.r, (room - room % k.q) / k.q)
		if charged > 0 then
			k.x = k.x + charged * k.q
			drop_or_write(k, false)
		end
		return k.r - charged
	end

	-- The first of so many units at that time; or after it, if the clock
	-- stood behind what had been seen.
	local function log_refund(k, taken)
		if taken <= k.t - k.q then
			return 0
		end
		local some = must('ZRANGEBYSCORE', k.key, taken, '+inf')
		for i = 1, #some do
			if k.law.units(some[i]) == -k.r then
				must('ZREM', k.key, some[i])
				k.total = k.total + k.r
				if k.total == 0 then
					must('DEL', k.key)
				else
					must('ZADD', k.key, k.total, 'n')
				end
				return 0
			end
		end
		return 0
	end

	local function log(k, taken)
		if k.law.stand(k) == NO_STATE then
			return nil
		elseif k.r < 0 then
			return log_refund(k, taken)
		end
		local charged = within(k.r, ceiling(k.p) - k.n)
		if charged > 0 then
			local at, newest = k.t, k.newest or 0
			if taken > k.t - k.q and taken < k.t then
				at = taken
			end
			newest = newest > at and newest or at
			k.total, k.serial = k.total + charged, k.serial + 1
			k.law.add(k, at, charged,
				ceil_div(newest + k.q, 1000))
		end
		return k.r - charged
	end

	-- A slot is never charged for.
	local function slot(k)
		if k.r >= 0 then
			return 0
		end
		local removed = try('ZREM', k.key, k.slot)
		if type(removed) == 'table' then
			foreign(removed)
			return nil
		end
		return 0
	end

	return { [3] = log, [4] = leaky, [5] = slot, [6] = calendar }
end
