import { spawnSync } from 'node:child_process'
import { afterAll, describe, expect, it } from 'vitest'
import { PATIENCE_MS } from '../../../test/world/limits.ts'
import { parseRecipe, type Recipe } from './recipe.ts'
import { Repairer } from './repairer.ts'

const repairer = new Repairer()
afterAll(() => repairer.close())

const letter = (payload: string) => ({
  source: 'queues' as const,
  encoding: '',
  kind: '',
  reference: '',
  payload: Buffer.from(payload),
})

/** A recipe with an expression that would be refused where recipes are read. */
const unread = (mapping: string): Recipe => ({ patch: null, mapping, headers: null, version: mapping })

/** The payload that a mapping makes of another, or why there is none. */
async function mapped(mapping: string, payload: string): Promise<string> {
  const [result] = await repairer.repair(unread(mapping), [letter(payload)])
  if (result?.ok !== true) return result?.reason ?? 'nothing'
  return result.repaired.payload === null ? 'as it was' : Buffer.from(result.repaired.payload).toString()
}

const ORDER = '{ "id" : 12345678901234567890,\n  "price":1.50, "lines":[{"n":1.0},{"n":2.0}], "d":1,"d":2 }'

describe('a mapping', () => {
  it.each<[string, string]>([
    ['$', 'as it was'],
    ['$merge([$, {"price": 1.5}])', 'as it was'],
    ['$ ~> |$|{"price": 2}|', ORDER.replace('1.50', '2')],
    ['$ ~> |lines[1]|{"n": n + 1}|', ORDER.replace('2.0', '3')],
    ['$ ~> |$|{}, "d"|', ORDER.replace(', "d":1,"d":2', '')],
    ['$ ~> |$|{"lines": lines[n > 1][]}|', ORDER.replace('{"n":1.0},', '')],
    ['$ ~> |$$|{"price": 2}|', 'as it was'],
    ['{"order": id, "text": $string(id)}', '{ "order":12345678901234567890,"text":"12345678901234567890" }'],
    ['[id, price]', '[12345678901234567890,1.5]'],
    ['price', '1.5'],
    ['null', 'null'],
  ])('changes what it changes, and not a character more: %s', async (mapping, expected) => {
    expect(await mapped(mapping, ORDER)).toBe(expected)
  })

  it.each<[string, string]>([
    ['missing', 'the mapping gives nothing'],
    ['function($x){ $x }', 'the mapping gives a function, at the whole payload'],
    ['{"a": [$sum]}', 'the mapping gives a function, at /a/0'],
    ['1 / 0', 'the mapping gives a number that is no JSON'],
    ['id + 1000000', 'computed from a number that it cannot read exactly'],
    [
      '"order " & id',
      'the mapping writes the number 12345678901234567890 as 12345678901234567000; use $string',
    ],
    ['$error("no customer")', 'the mapping failed: no customer'],
    ['$error($pad("", 1000, "x"))', `the mapping failed: ${'x'.repeat(300)}`],
    ['$now()', '$now is not available: it gives something else each time'],
    ['$millis()', '$millis is not available'],
    ['$random()', '$random is not available'],
    ['$shuffle(lines)', '$shuffle is not available'],
    ['$eval("1")', '$eval is not available'],
    ['$toMillis("12:30", "[H01]:[m01]")', '$toMillis needs a date'],
    ['$ ~> |$|{"self": $}|', 'nested more than 512 levels deep'],
    ['( $f := function($n){ 1 + $f($n) }; $f(1) )', 'the mapping failed: Stack overflow'],
    ['[1..10000000]', 'the mapping failed: The maximum sequence length'],
    [
      '( $m := $pad("", 1048576); $n := $m & $m & $m & $m; $n & $n & $n & $n & $m )',
      'the payload would be larger than 16 MiB',
    ],
  ])('is refused in plain words: %s', async (mapping, expected) => {
    expect(await mapped(mapping, ORDER)).toContain(expected)
  })

  it.each<[string, string, string]>([
    ['nothing', '', 'the payload is empty, and no JSON'],
    ['a word', 'hello', 'the payload is no JSON'],
    ['a byte order mark', '\ufeff{}', 'the payload is no JSON'],
    ['a number without end', '[1e400]', 'the payload has the number 1e400, which a mapping cannot read'],
    [
      'whole numbers that are too close',
      '[12345678901234567890,12345678901234567891]',
      'the payload has the numbers 12345678901234567891 and 12345678901234567890, which are one and the same to a mapping',
    ],
    [
      'fractions that are too close',
      '[0.1,0.1000000000000000055]',
      'the payload has the numbers 0.1000000000000000055 and 0.1, which are one and the same to a mapping',
    ],
    ['600 levels', `${'['.repeat(600)}${']'.repeat(600)}`, 'the payload is nested more than 512 levels deep'],
    [
      'a million levels',
      '['.repeat(1e6) + ']'.repeat(1e6),
      'the payload is nested more than 512 levels deep',
    ],
  ])('is not run on what it cannot read: %s', async (_name, payload, expected) => {
    expect(await mapped('$', payload)).toBe(expected)
  })

  it('gives the same in every time zone', async () => {
    expect(await mapped('$toMillis("2027-01-01T00:00:00")', 'null')).toBe('1798761600000')
    expect(await mapped('$toMillis("01.02.2027", "[D01].[M01].[Y0001]")', 'null')).toBe('1801440000000')
  })

  it.each<[string, string, string]>([
    ['$.constructor', '{}', 'the mapping gives nothing'],
    ['$sum.constructor', '{}', 'the mapping gives nothing'],
    ['$lookup(/a/, "constructor")', '{}', 'the mapping gives nothing'],
    ['$.__proto__', '{}', 'the mapping gives nothing'],
    ['$.__proto__.x', '{"__proto__":{"x":1}}', '1'],
    [
      '{"__proto__": {"polluted": 1}, "constructor": 2}',
      '{}',
      '{"__proto__":{"polluted":1},"constructor":2}',
    ],
    ['$ ~> |$|{"__proto__": {"polluted": 1}}|', '{}', '{"__proto__":{"polluted":1}}'],
    ['$ ~> |__proto__|{"polluted": 1}|', '{}', 'as it was'],
    ['polluted', '{}', 'the mapping gives nothing'],
    ['$f()', '{"_jsonata_lambda":true,"body":{}}', 'the mapping failed: Attempted to invoke a non-function'],
  ])('finds nothing behind the names of prototypes: %s', async (mapping, payload, expected) => {
    expect(await mapped(mapping, payload)).toBe(expected)
  })

  it.each([
    ['a text', '$length($pad("", 500000000))'],
    ['a list', '[1..1000000].([1..1000000])'],
  ])('that asks for too much memory is refused, and the next one runs: %s', async (_name, mapping) => {
    const [bomb, next] = await Promise.all([mapped(mapping, '1'), mapped('$ + 1', '1')])
    expect(bomb).toMatch(/^the repair (?:used too much memory|took longer than 1 s)$/)
    expect(next).toBe('2')
  })

  it('is not taken for endless because the server was busy', async () => {
    await mapped('$', '1')
    const outcome = mapped('$ + 1', '1')
    // Until the letter is sent; its answer and the end of its time come while nobody listens.
    for (let step = 0; step < 10; step++) await null
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_100)
    expect(await outcome).toBe('2')
  })
})

describe('the process of repairs', () => {
  const run = (repairer: Repairer, mapping: string, ...payloads: readonly string[]) =>
    repairer.repair(parseRecipe({ mapping }), payloads.map(letter))

  it('ends with its owner, who may be busy with it', async () => {
    const closing = new Repairer()
    const under = run(closing, '( $f := function($n){ $f($n) }; $f(1) )', '1')
    const waiting = run(closing, '$', '1')
    const settled = Promise.allSettled([under, waiting])
    await closing.close()
    for (const { status, ...rest } of await settled) {
      expect({ status, ...rest }).toMatchObject({ status: 'rejected', reason: { code: 'service_stopping' } })
    }
    await expect(run(closing, '$', '1')).rejects.toMatchObject({ code: 'service_stopping' })
    await closing.close()
  })

  it('does not keep a program that is done', () => {
    const file = (name: string) => JSON.stringify(new URL(name, import.meta.url).href)
    const code = `
      import { parseRecipe } from ${file('./recipe.ts')}
      import { Repairer } from ${file('./repairer.ts')}
      const letter = { source: 'queues', encoding: '', kind: '', reference: '', payload: Buffer.from('1') }
      const [result] = await new Repairer().repair(parseRecipe({ mapping: '$ + 1' }), [letter])
      console.log(Buffer.from(result.repaired.payload).toString())`
    const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], {
      encoding: 'utf8',
      timeout: PATIENCE_MS,
    })
    expect({ status, stdout }).toEqual({ status: 0, stdout: '2\n' })
  })
})
