import { describe, expect, it } from 'vitest'
import { query } from '../../test/world/postgres.ts'
import { freshPostgres } from '../../test/world/stores.ts'
import { bartleby } from '../../test/world/terminal-double.ts'
import { migrateStore, Office } from '../office.ts'
import { isPostgresItself } from './postgres-itself.ts'

describe('a server that says of itself', () => {
  it.each([
    'PostgreSQL 15.8 (Debian 15.8-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc (Debian 12.2.0-14) 12.2.0, 64-bit',
    'PostgreSQL 14.9 (Ubuntu 14.9-0ubuntu0.22.04.1) on aarch64-unknown-linux-gnu, compiled by gcc, 64-bit',
    'PostgreSQL 18.1 on x86_64-pc-linux-musl, compiled by gcc (Alpine 14.2.0) 14.2.0, 64-bit',
    'PostgreSQL 17beta2 on x86_64-pc-linux-gnu, compiled by gcc, 64-bit',
    'PostgreSQL 19devel on aarch64-apple-darwin, compiled by clang, 64-bit',
    'PostgreSQL 14.5, compiled by Visual C++ build 1914, 64-bit',
    'PostgreSQL 14.5 - Percona Distribution on x86_64-pc-linux-gnu, compiled by gcc, 64-bit',
    'PostgreSQL 16.4 (EnterpriseDB Advanced Server 16.4.1) on x86_64-pc-linux-gnu, compiled by gcc, 64-bit',
  ])('%s is PostgreSQL itself', (version) => {
    expect(isPostgresItself(version)).toBe(true)
  })

  it.each([
    'CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15 21:28:29, go1.22.2)',
    'PostgreSQL 11.2-YB-2.20.1.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 16.0.6, 64-bit',
    'PostgreSQL 15.2-YB-2025.1.0.0-b0 on aarch64-unknown-linux-gnu, compiled by clang, 64-bit',
    'PostgreSQL 9.4.26 (Greenplum Database 6.25.3 build commit:367edc6b) on x86_64-unknown-linux-gnu, compiled by gcc, 64-bit',
    'PostgreSQL 14.4 (Apache Cloudberry 1.6.0 build dev) on x86_64-pc-linux-gnu, compiled by gcc, 64-bit',
    'PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2, Redshift 1.0.28965',
    'PostgreSQL 9.5-RisingWave-1.7.0 (abcdef)',
    'PostgreSQL 12.3, compiled by Visual C++ build 1914, 64-bit, QuestDB',
    '',
  ])('%s is not', (version) => {
    expect(isPostgresItself(version)).toBe(false)
  })
})

/** Commands that open a store themselves, and the code with which each says that it could not. */
const COMMANDS = [
  ['migrate', 1],
  ['migrate --repair', 1],
  ['verify', 3],
  ['webhooks verify', 2],
] as const
const REFUSAL =
  /the store is on 'PostgreSQL 11.2-YB-2.20 on x86_64', which is not PostgreSQL itself: .*--unsupported-store/

describe('a store on a server that only speaks like PostgreSQL', () => {
  it('is refused with a sentence, unless somebody insists', async () => {
    const store = await freshPostgres()
    try {
      const database = new URL(store.url).pathname.slice(1)
      // Found before PostgreSQL's own function of that name.
      await query(
        store.url,
        `CREATE FUNCTION public.version() RETURNS text LANGUAGE sql AS $$ SELECT 'PostgreSQL 11.2-YB-2.20 on x86_64' $$;
         ALTER DATABASE ${database} SET search_path = public, pg_catalog`,
      )
      await expect(Office.open({ store: store.url })).rejects.toThrow(REFUSAL)
      await expect(migrateStore(store.url)).rejects.toThrow(REFUSAL)
      await (await Office.open({ store: store.url, unsupportedStore: true })).close()
      for (const [command, code] of COMMANDS) {
        const args = [...command.split(' '), '--store', store.url]
        const refused = { command, code, out: '', err: expect.stringMatching(REFUSAL) }
        expect({ command, ...(await bartleby(args)) }).toMatchObject(refused)
        const insisted = await bartleby([...args, '--unsupported-store'])
        expect({ command, ...insisted }).toMatchObject({ command, code: 0, err: '' })
      }
    } finally {
      await store.dispose()
    }
  })
})
