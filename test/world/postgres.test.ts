import { expect, inject, it } from 'vitest'
import { query } from './postgres.ts'
import { freshPostgres } from './stores.ts'

it('gives every caller a database of its own', async () => {
  const one = await freshPostgres()
  const two = await freshPostgres()
  try {
    await query(one.url, 'CREATE TABLE mine (x int)')
    await expect(query(two.url, 'SELECT * FROM mine')).rejects.toThrow('does not exist')
    expect(inject('postgresUrl')).not.toBe(one.url)
  } finally {
    await one.dispose()
    await two.dispose()
  }
})
