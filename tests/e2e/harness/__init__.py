"""What the end-to-end tests stand on: real servers and a raw FastCGI peer."""
