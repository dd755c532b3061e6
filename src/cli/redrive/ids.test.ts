import { expect, it } from 'vitest'
import { keysIn } from './plan-flags.ts'

it('reads letters by name, one a line, and as exports write them', () => {
  const text =
    'hmac/vault-7-20270110T090000000000Z\r\n\n kafka/a/b \n{"engine":"http","rowKey":"k","status":"Pending"}\n'
  expect(keysIn(text)).toEqual([
    { engine: 'hmac', rowKey: 'vault-7-20270110T090000000000Z' },
    { engine: 'kafka', rowKey: 'a/b' },
    { engine: 'http', rowKey: 'k' },
  ])
})

it.each(['hmac', '/key', 'hmac/', '{"engine":"hmac"}', '{', 'null'])(
  'says in which line %j is no letter',
  (line) => {
    expect(() => keysIn(`hmac/a\n${line}\n`)).toThrow(
      'line 2 of --ids-file is no letter; expected ENGINE/KEY',
    )
  },
)
