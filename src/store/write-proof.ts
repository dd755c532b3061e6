/** Whether the store takes writes: a full disk or a read-only PostgreSQL still answers reads. Writes a proof only after a write has failed. */
import { randomBytes } from 'node:crypto'
import { type Database, sql } from './database.ts'

/** Large and random: a full disk still has room for a small row, and PostgreSQL compresses repeated bytes. */
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

  async require(): Promise<void> {
    if (!this.#isInDoubt) return
    // Two transactions: SQLite writes nothing of a row put and taken in one.
    await this.#db.transaction('store.putProof', (tx) => tx.run(put, randomBytes(PROOF_BYTES)))
    await this.#db.transaction('store.takeProof', (tx) => tx.run(take))
    this.#isInDoubt = false
  }
}
