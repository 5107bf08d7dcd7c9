# Sluice, for GNU make: `make run` shows it, `make check` proves it, `make
# help` lists the rest. Each target installs the Debian packages it needs.

comma := ,
CC ?= cc
PKG_CONFIG ?= pkg-config
PYTHON ?= /usr/bin/python3
CFLAGS ?= -O2 -g

prefix ?= /usr/local
bindir ?= $(prefix)/bin
mandir ?= $(prefix)/share/man
sysconfdir ?= /etc
systemdunitdir ?= $(prefix)/lib/systemd/system

# DEVELOPER=1: warnings are errors. SANITIZE=address,undefined or thread.
# Each variant has a directory of its own: build/developer, build/thread ...
VARIANT := $(if $(SANITIZE),/$(subst $(comma),-,$(SANITIZE)),$(if \
	$(DEVELOPER),/developer))
BUILD ?= build$(VARIANT)

ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc)
endif

all: $(BUILD)/sluice

# What is done is said in a word; V=1 shows the commands.
quiet = $(if $(V),,@echo '  $(1) $(2)';)

help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST))

# --- Flags -----------------------------------------------------------------

# What not every compiler has: probed once for each into a file that make
# includes, which gives KNOWN.
PROBED := -Wall -Wextra -Wconversion -Wshadow -Wswitch-enum -Wvla -Wformat=2 \
	-Wmissing-prototypes -Wstrict-prototypes -Wold-style-definition \
	-Wpointer-arith -Wwrite-strings -Wundef -fno-strict-aliasing \
	-fstack-protector-strong -fstack-clash-protection -fPIE \
	-ftrivial-auto-var-init=zero
PROBED_LINK := -pie -Wl,-z,relro -Wl,-z,now
FLAGS_MK := $(BUILD)/flags-$(notdir $(lastword $(CC))).mk

NO_BUILD := clean help deps uninstall lint check check-long fuzz check-debian13
ifneq ($(filter-out $(NO_BUILD),$(or $(MAKECMDGOALS),all)),)
-include $(FLAGS_MK)
endif

probe = if echo 'int main(void) { return 0; }' | $(CC) -Werror $(1) \
	-x c -o $@.probe - 2>/dev/null; then echo "$(2) += $$f"; fi

$(FLAGS_MK): Makefile | deps-build
	@mkdir -p $(@D)
	@for f in $(PROBED); do $(call probe,-c $$f,KNOWN); done >$@.new
	@for f in $(PROBED_LINK); do $(call probe,-fPIE $$f,KNOWN_LINK); done \
		>>$@.new
	@rm -f $@.probe
	@mv $@.new $@

ifeq ($(SANITIZE),)
ifeq ($(filter -O0,$(CFLAGS)),)
FORTIFY := -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3
endif
else
SANITIZER := -fsanitize=$(SANITIZE) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer
endif

COMPILE = $(CC) -std=gnu17 -pthread -Isrc -I$(BUILD) -D_GNU_SOURCE $(FORTIFY) \
	$(CPPFLAGS) $(KNOWN) $(if $(DEVELOPER),-Werror) $(SANITIZER) $(CFLAGS)
LINK = $(CC) -pthread $(KNOWN_LINK) $(SANITIZER) $(CFLAGS) $(LDFLAGS)
LIBS = -lfcgi -lhiredis -linih \
	$(shell $(PKG_CONFIG) --libs libpcre2-8 libcrypto)

# --- The program -----------------------------------------------------------

SOURCES := $(sort $(wildcard src/*/*.c))
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o)
ROOMS := $(filter-out $(BUILD)/src/process/main.o,$(OBJECTS))
UNIT := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/unit/test_*.c)))
FUZZ := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
REPLAY := $(FUZZ:=-replay)
BENCH := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard tests/bench/*.c)))
LAWS := $(BUILD)/tests/unit/test_laws $(BUILD)/tests/lua/laws

$(BUILD)/sluice: $(OBJECTS)
	$(call quiet,LINK,$@)$(LINK) -o $@ $^ $(LIBS)

$(BUILD)/src/%.o: src/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(COMPILE) $(VERSIONS) -MMD -MP -c -o $@ $<

# The scripts, as text and SHA1.
$(BUILD)/lua_scripts.h: lua/embed.sh $(wildcard lua/*.lua)
	@mkdir -p $(@D)
	$(call quiet,LUA,$@)lua/embed.sh lua/check.lua lua/settle.lua lua/renew.lua \
		lua/fingerprint.lua >$@.new && mv $@.new $@
$(BUILD)/src/domain/redis_script.o: $(BUILD)/lua_scripts.h

# libfcgi and inih do not tell their versions, Debian does.
version_of = '"$(shell $(PKG_CONFIG) --modversion $(1) 2>/dev/null)"'
$(BUILD)/src/process/%.o: VERSIONS = \
	-DSLUICE_LIBFCGI_VERSION=$(call version_of,fcgi) \
	-DSLUICE_INIH_VERSION=$(call version_of,inih)

$(BUILD)/tests/unit/%: tests/unit/%.c $(ROOMS) $(BUILD)/flags | deps-unit
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(COMPILE) -MMD -MP $(LINK:$(CC)%=%) -o $@ $< \
		$(ROOMS) $(LIBS) -lcmocka

# The store in memory has its time from these.
$(LAWS): LDFLAGS += -Wl,--wrap=clock_steady_us
# Its clocks are its own.
$(BUILD)/tests/unit/test_lease: LDFLAGS += -Wl,--wrap=clock_mono_us \
	-Wl,--wrap=clock_steady_us
# It sets the system's clock.
$(BUILD)/tests/unit/test_decision: LDFLAGS += -Wl,--wrap=clock_real_us

$(BUILD)/tests/lua/%: tests/lua/%.c $(ROOMS) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(COMPILE) -MMD -MP $(LINK:$(CC)%=%) -o $@ $< \
		$(ROOMS) $(LIBS)

# Changes when the flags do, so that all that was built with others is built
# again.
$(BUILD)/flags: FORCE | deps-build
	@mkdir -p $(@D)
	@echo '$(subst ','\'',$(COMPILE) $(LINK))' | cmp -s - $@ || \
		echo '$(subst ','\'',$(COMPILE) $(LINK))' >$@

-include $(OBJECTS:.o=.d) $(UNIT:=.d) $(LAWS:=.d) $(BENCH:=.d)

# --- Showing it ------------------------------------------------------------

## make            build/sluice
## make run        lighttpd, Sluice and an application; PORT=8080
run: all | deps-run
	@SLUICE=$(BUILD)/sluice PORT=$(or $(PORT),8080) examples/run/run

## make demo       four gateways keep one limit, by way of Redis
demo: all | deps-demo
	@SLUICE=$(BUILD)/sluice $(PYTHON) examples/demo/demo

## make conf       writes conf/sluice.ini anew from the table of options
conf: all
	$(BUILD)/sluice options --ini >conf/sluice.ini.new
	mv conf/sluice.ini.new conf/sluice.ini

# --- Proving it ------------------------------------------------------------

SUITES = SLUICE=$(abspath $(BUILD)/sluice) PYTHON=$(PYTHON) tests/run/suites

## make check      every test, in minutes; ends with `N passed, N failed`
check: | deps-build deps-test
	@tests/run/parsers build/parsers
	@$(MAKE) --no-print-directory DEVELOPER=1 check-built

check-built: all $(UNIT) $(REPLAY) $(LAWS) $(BENCH)
	@$(SUITES) $(UNIT) $(REPLAY) tests/lua tests/e2e tests/run

## make check-long a million drawn steps for each algorithm; STEPS=, SEED=
check-long: | deps-build deps-test
	@STEPS=$(or $(STEPS),1000000) $(MAKE) --no-print-directory DEVELOPER=1 \
		check-long-built

check-long-built: all $(LAWS)
	@$(SUITES) $(BUILD)/tests/unit/test_laws tests/lua/test_laws.py

## make check-matrix  10,000 requests through each of examples/, in minutes
check-matrix: all | deps-test
	@MATRIX=whole SUITE_SECONDS=3600 $(SUITES) tests/e2e/matrix \
		tests/e2e/test_bodies.py

## make unit       the unit tests alone
unit: $(UNIT)
	@$(SUITES) $(UNIT)

unit-programs: $(UNIT) $(REPLAY) $(LAWS)

# The unit tests and the main job, for variants: SANITIZE=, valgrind, Debian 13
check-main: all $(UNIT) $(REPLAY) | deps-test
	@PYTEST_ADDOPTS='-m main_job' $(SUITES) $(UNIT) $(REPLAY) tests/e2e

# And then the set-ups of examples/, for Debian 13.
check-set-ups: check-main
	@$(SUITES) tests/e2e/matrix

MEMCHECK := valgrind -q --error-exitcode=99 --leak-check=full \
	--suppressions=$(CURDIR)/tests/run/memcheck.supp \
	--errors-for-leak-kinds=definite,indirect
## make valgrind   the unit tests and the main job under memcheck
valgrind: all $(UNIT) $(REPLAY) | deps-test deps-valgrind
	@SLUICE_SLOW=1 SLUICE_WRAPPER='$(MEMCHECK)' \
		PYTEST_ADDOPTS='-m main_job' $(SUITES) $(UNIT) $(REPLAY) tests/e2e

FUZZ_SECONDS ?= 30

# The kept corpus of each fuzz target is an ordinary test.
$(BUILD)/tests/fuzz/%-replay: tests/fuzz/%.c tests/fuzz/replay.c \
		tests/fuzz/fuzz.h $(ROOMS) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(COMPILE) -DCORPUS='"tests/fuzz/corpus/$*"' \
		$(LINK:$(CC)%=%) -o $@ $< tests/fuzz/replay.c $(ROOMS) $(LIBS)

$(BUILD)/tests/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz.h $(ROOMS) $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(COMPILE) $(LINK:$(CC)%=%) -fsanitize=fuzzer -o $@ \
		$< $(ROOMS) $(LIBS)

## make fuzz       each parser against libFuzzer, FUZZ_SECONDS=30 each
fuzz: | deps-build deps-fuzz
	@$(MAKE) --no-print-directory CC=clang BUILD=build/fuzz \
		SANITIZE=address,undefined CFLAGS='-O1 -g \
		-fsanitize=fuzzer-no-link' fuzz-built

fuzz-built: $(FUZZ)
	@for target in $(FUZZ); do name=$${target##*/}; \
		mkdir -p $(BUILD)/corpus/$$name; \
		$$target -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=5 \
		-verbosity=0 -print_final_stats=1 -artifact_prefix=$(BUILD)/ \
		$(BUILD)/corpus/$$name tests/fuzz/corpus/$$name || exit 1; done

## make lint       format, static analysis, layers, scripts
lint: | deps-build deps-lint
	@tests/lint/lint

## make bench      side by side with its peers; GROUPS=, ROUNDS=5, SECONDS=2
bench: all $(BENCH) | deps-bench
	@SLUICE=$(BUILD)/sluice ROUNDS=$(ROUNDS) SECONDS=$(SECONDS) \
		$(PYTHON) -B tests/bench/bench build/bench.json $(GROUPS)

## make soak       SOAK=300 seconds at saturation: is what it holds flat?
SOAK ?= 300
soak: all $(BENCH) | deps-bench
	@SLUICE=$(BUILD)/sluice $(PYTHON) -B tests/bench/soak $(SOAK)

$(BUILD)/tests/bench/checks: $(ROOMS)
$(BUILD)/tests/bench/%: tests/bench/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,CC,$<)$(COMPILE) -MMD -MP $(LINK:$(CC)%=%) -o $@ $< \
		$(filter %.o,$^) $(LIBS)

## make check-debian13  unit tests, main job, examples in a Debian 13 tree
check-debian13: | deps-debian13
	@tests/run/debian13 build/debian13

# --- Installing it ---------------------------------------------------------

UNITS := $(notdir $(wildcard conf/systemd/*))

## make install    DESTDIR=, prefix=/usr/local, sysconfdir=/etc; also uninstall
install: all
	install -D -m 755 $(BUILD)/sluice $(DESTDIR)$(bindir)/sluice
	test -e $(DESTDIR)$(sysconfdir)/sluice/sluice.ini || install -D -m 644 \
		conf/sluice.ini $(DESTDIR)$(sysconfdir)/sluice/sluice.ini
	for page in $(wildcard doc/*.[58]); do \
		install -D -m 644 "$$page" \
		$(DESTDIR)$(mandir)/man$${page##*.}/$${page##*/}; done
	for unit in $(UNITS); do \
		install -D -m 644 /dev/null \
		$(DESTDIR)$(systemdunitdir)/$$unit && \
		sed 's,/usr/local/bin/sluice,$(bindir)/sluice,' \
		conf/systemd/$$unit >$(DESTDIR)$(systemdunitdir)/$$unit; done

# The configuration stays: it is its owner's.
uninstall:
	rm -f $(DESTDIR)$(bindir)/sluice $(foreach page,$(wildcard doc/*.[58]), \
		$(DESTDIR)$(mandir)/man$(subst .,,$(suffix $(page)))/$(notdir \
		$(page))) $(UNITS:%=$(DESTDIR)$(systemdunitdir)/%)

## make clean      removes build/
clean:
	rm -rf build

## make deps       the packages that building, running and testing need
deps:
	@tests/run/deps build run demo test
deps-%: FORCE
	@tests/run/deps $*

FORCE:
.PHONY: all help run demo conf check check-built check-long check-long-built \
	check-matrix unit unit-programs check-main check-set-ups fuzz \
	fuzz-built valgrind lint bench soak check-debian13 install uninstall \
	clean deps FORCE
