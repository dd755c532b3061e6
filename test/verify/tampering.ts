/** Breaks closed stores with plain SQL, and asks verify what it finds. */
import { DatabaseSync } from 'node:sqlite'
import { openDatabase } from '../../src/store/open.ts'
import { type VerifyReport, verifyStore } from '../../src/verify/verify.ts'
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

export async function verify(url: string): Promise<VerifyReport> {
  const db = openDatabase(url, { poolSize: 1 })
  try {
    return await verifyStore(db)
  } finally {
    await db.close()
  }
}
