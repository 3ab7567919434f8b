-- Works with releases since 0010

-- As with the members of 0024, whoever goes back to an older release takes it out of the saved configurations first.
comment on column gateway_config.config is
  'Since release 0024 rules may have assistant_history, unscored_parts and redact_restore, and since 0029 contact, which are stored only where they were given.';
