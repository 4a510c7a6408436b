-- Times are milliseconds since 1970 UTC. Documents are text. The same statements are meant for PostgreSQL later.
create table inbound (
  platform text not null,
  id text not null,
  seen_at bigint not null,
  primary key (platform, id)
);
create index inbound_by_age on inbound (seen_at);

create table sessions (
  profile text not null,
  session text not null,
  conversation text not null,
  started_at bigint not null,
  chosen text,
  answered_by text,
  answered_at bigint,
  primary key (profile, session)
);

-- `subscription` is the folded name.
create table provider_sessions (
  conversation text not null,
  subscription text not null,
  id text not null,
  seen bigint not null,
  primary key (conversation, subscription)
);

create table exchanges (
  conversation text not null,
  seq bigint not null,
  request text not null,
  answer text not null,
  primary key (conversation, seq)
);

-- Columns, not a document: no damage to one field may cost the request.
create table turns (
  turn text not null primary key,
  profile text not null,
  session text not null,
  conversation text not null,
  inbound text not null,
  origin text not null,
  platform text not null,
  address text not null,
  request text not null,
  started_at bigint not null,
  owner text not null,
  carries text not null,
  status text not null,
  ended_at bigint
);
create index turns_open on turns (started_at) where status = 'open';
create index turns_by_end on turns (ended_at);

create table journal (
  turn text not null references turns (turn) on delete cascade,
  seq bigint not null,
  entry text not null,
  primary key (turn, seq)
);

-- `over_since`: when a sweep first saw the handoff over; what retention counts from.
create table handoffs (
  id text not null primary key,
  turn text not null,
  profile text not null,
  session text not null,
  conversation text not null,
  created_at bigint not null,
  expires_at bigint not null,
  state text not null,
  revision bigint not null,
  claimed_by text,
  over_since bigint,
  payload text not null
);
create index handoffs_of_lane on handoffs (profile, session, created_at);
create index handoffs_by_state on handoffs (state);
create index handoffs_by_claim on handoffs (claimed_by);

-- `scope` is empty where none is stated.
create table readings (
  subscription text not null,
  window_id text not null,
  scope text not null,
  reading text not null,
  primary key (subscription, window_id, scope)
);

create table counters (
  name text not null primary key,
  value bigint not null
);
insert into counters (name, value) values ('readings', 0);
