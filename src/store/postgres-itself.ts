/** Which servers are PostgreSQL itself. Others speak its protocol but differ in locks, isolation, plans or sequences. */
import { type Database, sql } from './database.ts'

/** `PostgreSQL 15.8 (Debian …) on x86_64…`, `PostgreSQL 18beta1 on …`, on Windows `PostgreSQL 14.5, compiled by …`. */
const ITSELF = /^PostgreSQL \d+(?:\.\d+)*(?:devel|beta\d+|rc\d+)?(?:[ ,]|$)/

const OTHERS =
  /greenplum|cloudberry|yugabyte|cockroach|redshift|materialize|risingwave|questdb|opengauss|gaussdb|kingbase|polardb|\bh2\b|crate/i

/** True for PostgreSQL, packaged or patched by anybody. */
export const isPostgresItself = (version: string): boolean => ITSELF.test(version) && !OTHERS.test(version)

class StoreUnsupported extends Error {
  override readonly name = 'StoreUnsupported'

  constructor(version: string) {
    super(
      `the store is on '${version.slice(0, 80)}', which is not PostgreSQL itself: Bartleby's promises are not proved there; use PostgreSQL, or give --unsupported-store to try it at your own risk`,
    )
  }
}

const readVersion = sql('store.version', {
  postgres: 'SELECT version() AS version',
  sqlite: 'SELECT sqlite_version() AS version',
})

export async function requirePostgresItself(db: Database): Promise<void> {
  if (db.dialect !== 'postgres') return
  const [row] = await db.session('store.version', (session) => session.rows<{ version: string }>(readVersion))
  const version = row?.version ?? ''
  if (!isPostgresItself(version)) throw new StoreUnsupported(version)
}
