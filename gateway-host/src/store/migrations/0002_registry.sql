-- `seq`: the value of the counter `readings` when the row last changed; what is newer than a known value is read alone.
alter table readings add column seq bigint not null default 0;
create index readings_by_seq on readings (seq);

-- Who each login is, for finding out which ones draw on one allowance. Keyed hashes, never a secret.
create table logins (
  subscription text not null primary key,
  login text not null
);

-- When a quota group's own surface may be asked again. `head` is the folded name that stands for the group.
create table probes (
  head text not null primary key,
  state text not null
);
