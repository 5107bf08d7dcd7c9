# Sluice: GNU make. `make run` shows it, `make check` proves it.

CC ?= cc
PKG_CONFIG ?= pkg-config
BUILD ?= build
prefix ?= /usr/local

PACKAGES = libpcre2-8 libcrypto hiredis
LIBS = -lfcgi -lhiredis -linih $(shell $(PKG_CONFIG) --libs libpcre2-8 libcrypto) -pthread

CPPFLAGS += -Isrc -I$(BUILD) -D_GNU_SOURCE
CFLAGS ?= -O2 -g
CFLAGS += -std=gnu17 -pthread -fno-strict-aliasing
ifeq ($(DEVELOPER),1)
CFLAGS += -Werror -Wall -Wextra -Wconversion -Wshadow -Wswitch-enum -Wvla \
	-Wformat=2 -Wmissing-prototypes -Wstrict-prototypes -Wpointer-arith \
	-Wwrite-strings -Wundef
endif
ifneq ($(SANITIZE),)
BUILD := build/$(subst $(comma),-,$(SANITIZE))
CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer
LDFLAGS += -fsanitize=$(SANITIZE)
endif
comma := ,

SOURCES := $(sort $(wildcard src/*/*.c))
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o)
ROOMS := $(filter-out $(BUILD)/src/process/main.o,$(OBJECTS))
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(sort $(wildcard tests/unit/test_*.c)))

all: $(BUILD)/sluice

$(BUILD)/sluice: $(OBJECTS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/src/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/unit/%: tests/unit/%.c $(ROOMS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP $(LDFLAGS) -o $@ $< $(ROOMS) $(LIBS) -lcmocka

unit: $(UNIT)
	@for t in $(UNIT); do $$t || exit 1; done

clean:
	rm -rf build

-include $(OBJECTS:.o=.d) $(UNIT:=.d)
.PHONY: all unit clean
