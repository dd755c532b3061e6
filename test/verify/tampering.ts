/** Breaks closed stores with plain SQL. */
import { DatabaseSync } from 'node:sqlite'
import { query } from '../world/postgres.ts'

/** SQL: one text for both stores, or one for each. */
export type Tampering = string | { readonly postgres: string; readonly sqlite: string }

/** One text for both stores. */
export const same = (text: string) => ({ postgres: text, sqlite: text })

export async function tamper(url: string, text: Tampering): Promise<void> {
  const { postgres, sqlite } = typeof text === 'string' ? same(text) : text
  if (!url.startsWith('sqlite:')) return query(url, postgres)
  const store = new DatabaseSync(url.slice('sqlite:'.length))
  store.exec(sqlite.replaceAll('bartleby.', ''))
  store.close()
}
