-- Works with releases since 0010

-- A release refuses the calls of an organization whose configuration has members that it does not know, because a part of it
-- would protect less than it claims (docs/decisions/0013-upgrades.md). So whoever goes back to an older release takes these
-- members out of the saved configurations first.
comment on column gateway_config.config is
  'Since release 0024 rules may have assistant_history, unscored_parts and redact_restore, which are stored only where they were given.';
