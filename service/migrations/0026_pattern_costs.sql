-- Works with releases since 0010

-- What each pattern of a rule costs, in the order in which the rule has them: microseconds for 8 KB of a text that is hard for it,
-- measured when the version was published. Null: it was published by a release that did not keep it.
alter table policy_version add column pattern_costs integer[] check (cardinality(pattern_costs) <= 1000);
