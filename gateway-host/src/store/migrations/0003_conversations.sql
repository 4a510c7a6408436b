-- Conversations that were left once, with what a lane remembers of its current one. One that was picked up again keeps
-- its row. `number` is counted per lane and never changes.
create table conversations (
  conversation text not null primary key,
  profile text not null,
  session text not null,
  number bigint not null,
  started_at bigint not null,
  used_at bigint not null,
  chosen text,
  answered_by text,
  answered_at bigint
);
create unique index conversations_of_lane on conversations (profile, session, number);

-- What was left before this table was there, as far as its turns are still kept.
insert into conversations (conversation, profile, session, number, started_at, used_at)
select conversation, profile, session,
  row_number() over (partition by profile, session order by min(started_at), conversation),
  min(started_at), max(coalesce(ended_at, started_at))
from turns
where not exists (select 1 from sessions where sessions.conversation = turns.conversation)
group by conversation, profile, session;

-- Who spoke in a conversation, by the platform's id of the person.
create table participants (
  conversation text not null,
  platform text not null,
  sender text not null,
  primary key (conversation, platform, sender)
);
create index participants_by_sender on participants (platform, sender);

-- What buttons do. `only_for` is empty where everybody may press; `undoes` is a document.
create table actions (
  token text not null primary key,
  kind text not null,
  platform text not null,
  profile text not null,
  session text not null,
  conversation text not null,
  only_for text,
  undoes text not null,
  made_at bigint not null,
  expires_at bigint not null,
  state text not null
);
create index actions_of_lane on actions (profile, session, kind) where state = 'open';
create index actions_by_age on actions (expires_at);
