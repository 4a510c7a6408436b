-- One row per conversation under routing: its machine and where it lives, as one document. `settled` = nothing runs and
-- nothing is waited for.
create table routing (
  conversation text not null primary key,
  revision bigint not null,
  settled bigint not null,
  document text not null
);
create index routing_unsettled on routing (conversation) where settled = 0;

-- Append-only. `replay` holds the inputs of the step.
create table routing_audit (
  seq bigint not null primary key,
  at bigint not null,
  conversation text not null,
  turn text,
  kind text not null,
  document text not null
);
create index routing_audit_of_turn on routing_audit (turn, seq);
create index routing_audit_of_conversation on routing_audit (conversation, seq);
create index routing_audit_by_kind on routing_audit (kind, at);

-- Room promised to switches in flight; see the counter `promises`.
create table promises (
  id text not null primary key,
  at bigint not null,
  document text not null
);

create table burn (
  subscription text not null,
  window_id text not null,
  document text not null,
  primary key (subscription, window_id)
);

-- Millionths of a dollar. `cost` is null while the attempt runs: then `worst` counts.
create table spend (
  attempt text not null primary key,
  conversation text not null,
  day bigint not null,
  worst bigint not null,
  cost bigint
);
create index spend_by_day on spend (day);

insert into counters (name, value) values ('routing_audit', 0), ('promises', 0);
