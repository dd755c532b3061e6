import Type from 'typebox'
import { section, text, wholeNumber } from '../core/settings/kinds.ts'
import { readStoreUrl, STORE_URL_FORMS } from './store-url.ts'

export const StoreSchema = text('Where the office is kept: a file of SQLite, the memory, or PostgreSQL.', {
  default: 'sqlite:./data/bartleby.db',
  allowed: STORE_URL_FORMS,
  is: (url) => readStoreUrl(url) !== null,
})

export const PostgresSchema = section('How PostgreSQL is reached.', {
  poolSize: wholeNumber('Connections of one server to PostgreSQL.', { from: 1, to: 1_000, default: 8 }),
  listenUrl: Type.Optional(
    text("PostgreSQL's own address for notifications, where `store` is that of a pooler.", {
      allowed: "PostgreSQL's own address, 'postgres://USER:PASSWORD@HOST:PORT/DATABASE'",
      otherwise: 'the address in `store`',
      is: (url) => readStoreUrl(url)?.kind === 'postgres',
    }),
  ),
})
