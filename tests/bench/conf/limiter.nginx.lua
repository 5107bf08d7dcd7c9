-- The limiter that nginx runs itself: one EVALSHA on a kept connection.
local redis = require 'nginx.redis'
local db = redis:new()
local sha1, limit, width = '@{sha1}', tonumber('@{limit}'), 3600000

local ok, err = db:connect('unix:@{redis}')
if not ok then
	ngx.log(ngx.ERR, 'redis: ', err)
	return ngx.exit(500)
end
local figures, failure = db:evalsha(sha1, 1,
	'@{name}:' .. ngx.var.remote_addr, limit, width)
if not figures then
	ngx.log(ngx.ERR, 'redis: ', failure)
	return ngx.exit(500)
end
db:set_keepalive(60000, 64)
ngx.header['X-RateLimit-Limit'] = limit
ngx.header['X-RateLimit-Remaining'] = figures[2]
ngx.header['X-RateLimit-Reset'] = figures[3]
if figures[1] == 0 then
	ngx.header['Retry-After'] = figures[3]
	return ngx.exit(429)
end
