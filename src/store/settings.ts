import Type from 'typebox'
import { section, wholeNumber } from '../core/settings/kinds.ts'
import { readStoreUrl, STORE_URL_FORMS } from './store-url.ts'

export const StoreSchema = Type.Refine(
  Type.String({ default: 'sqlite:./data/bartleby.db', description: STORE_URL_FORMS }),
  (text) => readStoreUrl(text) !== null,
)

export const PostgresSchema = section({
  poolSize: wholeNumber(1, 1_000, 8),
  listenUrl: Type.Optional(
    Type.Refine(
      Type.String({ description: "PostgreSQL's own address, 'postgres://USER:PASSWORD@HOST:PORT/DATABASE'" }),
      (text) => readStoreUrl(text)?.kind === 'postgres',
    ),
  ),
})
