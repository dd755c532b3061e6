/**
 * Whether the store takes writes. A full disk, or a PostgreSQL that became read-only, still answers reads. Nothing is written to find
 * out while writes succeed; after one has failed, a write of our own proves that they are taken again.
 */
import { randomBytes } from 'node:crypto'
import { type Database, sql } from './database.ts'

/** A disk that is full for most writes still has room for a small one; PostgreSQL would make one of bytes that repeat. */
const PROOF_BYTES = 262_144

const put = sql(
  'store.putProof',
  `INSERT INTO bartleby.secrets (name, value) VALUES ('write-proof', $1)
   ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
)
const take = sql('store.takeProof', `DELETE FROM bartleby.secrets WHERE name = 'write-proof'`)

export class WriteProof {
  readonly #db: Database
  #isInDoubt = false

  constructor(db: Database) {
    this.#db = db
    db.onCall(({ refused }) => {
      if (refused) this.#isInDoubt = true
    })
  }

  /** Rejects when the store refuses writes. */
  async require(): Promise<void> {
    if (!this.#isInDoubt) return
    // Two transactions: SQLite writes nothing of what the same one puts and takes.
    await this.#db.transaction('store.putProof', (tx) => tx.run(put, randomBytes(PROOF_BYTES)))
    await this.#db.transaction('store.takeProof', (tx) => tx.run(take))
    this.#isInDoubt = false
  }
}
