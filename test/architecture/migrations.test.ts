/** Migrations have one number over all modules. */
import { expect, it } from 'vitest'
import { MIGRATIONS } from '../../src/migrations.ts'

it('numbers the migrations of all modules from 1, each once, without a hole', () => {
  const numbers = MIGRATIONS.map(({ number }) => number).toSorted((a, b) => a - b)
  expect(numbers).toEqual(MIGRATIONS.map((_, at) => at + 1))
})

it('gives every migration a name of its own', () => {
  expect(new Set(MIGRATIONS.map(({ name }) => name)).size).toBe(MIGRATIONS.length)
})
