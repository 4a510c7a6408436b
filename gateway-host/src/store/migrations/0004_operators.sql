-- People who became operators of a profile by typing its pairing code. They count while the configuration names none.
create table operators (
  profile text not null,
  platform text not null,
  person text not null,
  name text not null,
  paired_at bigint not null,
  primary key (profile, platform, person)
);
