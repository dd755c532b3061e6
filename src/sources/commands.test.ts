import { expect, it } from 'vitest'
import { SOURCE_COMMANDS } from './commands.ts'
import { SOURCES } from './index.ts'

it('has commands of sources that there are, in the order of their list', () => {
  const listed = new Set(SOURCE_COMMANDS.map(({ name }) => name))
  expect([...listed]).toEqual(SOURCES.map(({ name }) => name).filter((name) => listed.has(name)))
})

it('has one source that takes what is reported', () => {
  expect(SOURCE_COMMANDS.filter(({ takesReports }) => takesReports)).toHaveLength(1)
})
