-- Sessions that were full, or that a conversation left: never resumed again. Generations are counted per base title and
-- subscription, from 0.
create table retired_sessions (
  base text not null,
  subscription text not null,
  generation bigint not null,
  conversation text not null,
  session text not null,
  reason text not null,
  retired_at bigint not null,
  primary key (base, subscription, generation)
);
create index retired_by_session on retired_sessions (conversation, subscription, session);

-- What the sessions of a lane were told by a program, as digests.
create table told (
  profile text not null,
  session text not null,
  conversation text not null,
  seen text not null,
  primary key (profile, session)
);

-- The digests by which a conversation of a program without a name is found again; the oldest go.
create table landmarks (
  profile text not null,
  digest text not null,
  session text not null,
  seq bigint not null,
  primary key (profile, digest)
);
create index landmarks_by_age on landmarks (profile, seq);
