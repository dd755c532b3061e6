import { expect, it } from 'vitest'
import { SOURCE_COMMANDS } from './commands.ts'
import { SOURCES } from './index.ts'

it('has a line for every source, in the same order', () => {
  expect(SOURCE_COMMANDS.map(({ name }) => name)).toEqual(SOURCES.map(({ name }) => name))
})
