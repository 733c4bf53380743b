-- The shop's tables. charges has no unique key on purpose: that nobody is charged twice is the engine's doing.
create schema if not exists shop;

create table if not exists shop.products (
  sku text primary key,
  name text not null,
  unit_price_cents bigint not null check (unit_price_cents >= 0),
  stock bigint not null check (stock >= 0)
);

create table if not exists shop.reservations (
  token text not null,
  order_id text not null,
  sku text not null,
  quantity bigint not null,
  primary key (token, sku)
);

create table if not exists shop.charges (
  charge_id bigint primary key generated always as identity,
  order_id text not null,
  amount_cents bigint not null,
  payment text not null,
  charged_at timestamptz not null default clock_timestamp()
);

create table if not exists shop.parcels (
  token text primary key,
  order_id text not null,
  tracking text not null
);

create table if not exists shop.messages (
  token text primary key,
  order_id text not null,
  body text not null
);

-- Every call that the carrier and the mail service heard, the repeated ones too.
create table if not exists shop.calls (
  call_id bigint primary key generated always as identity,
  service text not null,
  token text not null,
  order_id text not null
);
