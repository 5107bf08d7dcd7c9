-- Redis gives its scripts these; the fragments in lua/ give each other the
-- rest, as they are pasted into one script.
std = 'lua51'
read_globals = { 'redis', 'struct', 'KEYS', 'ARGV' }

local laws = {
	'FIRST', 'LAWS', 'LEASE', 'MAX', 'NEVER', 'NO_STATE', 'OBSERVE',
	'PENALTY', 'RECORD', 'RECORD_SIZE', 'WIDE', 'bucket', 'ceil_div', 'ceiling',
	'fixed', 'foreign', 'get_both', 'get_own', 'give_ttl',
	'make_settle_wide', 'make_sets', 'make_wide', 'mul_div', 'must', 'now',
	'now_ms', 'own', 'OWN', 'OWN_SIZE', 'pack_bytes', 'sliding',
	'still_lacking', 'try', 'unpack_bytes', 'within', 'write',
}
files['lua/now.lua'].ignore = { '211' }
files['lua/laws.lua'] = { read_globals = { 'now_us' }, ignore = { '211' } }
for _, name in ipairs { 'sets', 'settle_wide', 'wide' } do
	files['lua/' .. name .. '.lua'] = {
		read_globals = laws, ignore = { '211/make_.*' },
	}
end
files['lua/own.lua'] = { read_globals = laws, ignore = { '211' } }
for _, name in ipairs { 'check', 'settle', 'renew' } do
	files['lua/' .. name .. '.lua'].read_globals = laws
end
files['tests/bench/conf/limiter.nginx.lua'].globals = { 'ngx' }
