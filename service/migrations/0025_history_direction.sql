-- Works with releases since 0010

-- Matches in earlier answers, which callers send, are counted apart from those in what users say.
alter type policy_direction add value 'history';
