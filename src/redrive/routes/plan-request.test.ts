/** What can be asked to be planned, and what is refused, by name. */
import { describe, expect, it } from 'vitest'
import { instant } from '../../core/clock.ts'
import { BartlebyError } from '../../core/errors.ts'
import { readPlanRequest } from './plan-request.ts'

/** As it is read from a body, but with the numbers that JSON cannot write. */
const read = (body: object) => readPlanRequest({ text: JSON.stringify(body), fields: { ...body } }, 'nell')
const retry = (body: object = {}) => read({ filter: {}, action: 'retry', ...body })

/** The code and message of the refusal. */
function refusal(body: object): string {
  try {
    read(body)
  } catch (error) {
    if (error instanceof BartlebyError) return `${error.code}: ${error.message}`
    throw error
  }
  return 'it was taken'
}
const refused = (body: object) => refusal({ filter: {}, action: 'retry', ...body })

describe('a plan that is asked for', () => {
  it('has only what must be there, and defaults', () => {
    expect(read({ filter: {}, action: 'restore' })).toEqual({
      selection: { by: 'filter', filter: {} },
      action: 'restore',
      queue: null,
      recipe: null,
      terms: { rate: null, canary: null, stopRule: null, order: 'key' },
      reason: null,
      actor: 'nell',
    })
    const nulls = { signature: null, ids: null, queue: null, repair: null, rate: null, canary: null }
    expect(retry({ ...nulls, stopRule: null, order: null, reason: null })).toEqual(retry())
  })

  it('has all there is', () => {
    const plan = read({
      filter: { engine: 'hmac', status: 'Pending', minAttempts: 3, fromDate: '2027-01-15', q: ' a b ' },
      signature: '1-abc',
      action: 'move',
      queue: 'later',
      repair: { patch: [{ op: 'remove', path: '/a' }], headers: { remove: ['kind'] } },
      rate: 0.5,
      canary: 25,
      stopRule: { percent: 12.5, of: 40 },
      order: 'none',
      reason: 'mended',
    })
    expect(plan).toMatchObject({
      selection: {
        by: 'filter',
        filter: {
          engine: 'hmac',
          status: 'Pending',
          minAttempts: 3,
          fromDate: instant(1_799_971_200_000_000n),
          q: ' a b ',
          signature: '1-abc',
        },
      },
      action: 'move',
      queue: 'later',
      recipe: { patch: [{ op: 'remove', path: '/a' }], mapping: null },
      terms: {
        rate: 0.5,
        canary: { letters: 25, confirmPercent: 100, waitSeconds: 600 },
        stopRule: { percent: 12.5, of: 40 },
        order: 'none',
      },
      reason: 'mended',
    })
  })

  it('may name a signature alone, or letters in both ways', () => {
    expect(read({ signature: '1-abc', action: 'retry' }).selection).toEqual({
      by: 'filter',
      filter: { signature: '1-abc' },
    })
    expect(retry({ filter: { signature: '1-abc' }, signature: '1-abc' }).selection).toEqual({
      by: 'filter',
      filter: { signature: '1-abc' },
    })
    const ids = ['hmac/a%2Fb-20270115T080000000000Z', { engine: 'gone', rowKey: 'x/y' }]
    expect(read({ ids, action: 'retry' }).selection).toEqual({
      by: 'ids',
      ids: [
        { engine: 'hmac', rowKey: 'a%2Fb-20270115T080000000000Z' },
        { engine: 'gone', rowKey: 'x/y' },
      ],
    })
  })

  it('may have numbers in its repair that JavaScript has not', () => {
    const text =
      '{"action":"retry","filter":{},"repair":{"patch":[{"op":"add","path":"/n","value":9007199254740993}]}}'
    const { recipe } = readPlanRequest({ text, fields: JSON.parse(text) }, 'nell')
    expect(JSON.stringify(recipe?.patch)).toBe('[{"op":"add","path":"/n","value":9007199254740993}]')
  })

  it('may say more of the letters that go first', () => {
    const canary = { letters: 3, confirmPercent: 66.5, waitSeconds: 60 }
    expect(retry({ canary }).terms.canary).toEqual(canary)
    expect(retry({ canary: {} }).terms.canary).toEqual({ letters: 10, confirmPercent: 100, waitSeconds: 600 })
    expect(retry({ canary: 10_000, rate: 1_000_000 }).terms).toMatchObject({ rate: 1_000_000 })
    expect(retry({ stopRule: { percent: 0, of: 1 } }).terms.stopRule).toEqual({ percent: 0, of: 1 })
  })
})

describe('a plan is refused', () => {
  it('with a field that nobody knows, wherever it is', () => {
    expect(refused({ colour: 'red' })).toMatch(
      /^parameter_invalid: colour is invalid; it is none of filter, /,
    )
    expect(refused({ filter: { colour: 'red' } })).toMatch(/filter.colour is invalid; it is none of engine, /)
    expect(refused({ canary: { first: 1 } })).toContain('canary.first is invalid; it is none of letters, ')
    expect(refused({ stopRule: { percent: 1, of: 1, at: 1 } })).toContain('stopRule.at is invalid')
    expect(refusal({ action: 'retry', ids: [{ engine: 'a', rowKey: 'b', version: 1 }] })).toContain(
      'ids[0].version is invalid; it is none of engine, rowKey',
    )
  })

  it('without exactly one of filter, signature and ids', () => {
    expect(refusal({ action: 'retry' })).toContain('filter is invalid; it is missing, give exactly one of')
    expect(refused({ ids: ['a/b'] })).toContain('ids is invalid; it is given with filter')
    expect(refusal({ action: 'retry', signature: 's', ids: ['a/b'] })).toContain('it is given with signature')
    expect(refused({ filter: { signature: 'a' }, signature: 'b' })).toContain("another than 'a'")
    expect(refused({ signature: '' })).toContain('signature is invalid; it is empty')
    expect(refused({ signature: 5 })).toContain('signature is invalid; it is a number')
  })

  it('with a filter that a list would refuse, or that says nothing', () => {
    expect(refused({ filter: 'all' })).toContain("filter is invalid; it is 'all', give an object")
    expect(refused({ filter: [] })).toContain('filter is invalid; it is a list')
    expect(refused({ filter: { engine: null } })).toContain('filter.engine is invalid; it is null')
    expect(refused({ filter: { engine: '' } })).toContain('filter.engine is invalid; it is empty')
    expect(refused({ filter: { q: 'a\0b' } })).toContain('filter.q is invalid; it holds the null character')
    expect(refused({ filter: { q: 'x'.repeat(4_097) } })).toContain('filter.q is invalid; it has 4097')
    expect(refused({ filter: { status: 'Dead' } })).toContain('status_unknown')
    expect(refused({ filter: { source: 'mars' } })).toContain('source_unknown')
    expect(refused({ filter: { outcome: 'lost' } })).toContain('outcome is invalid')
    expect(refused({ filter: { minAttempts: 0 } })).toContain(
      "minAttempts is invalid; '0' is no whole number",
    )
    expect(refused({ filter: { minAttempts: 1.5 } })).toContain('minAttempts is invalid')
    expect(refused({ filter: { minAttempts: '3' } })).toContain("filter.minAttempts is invalid; it is '3'")
    expect(refused({ filter: { fromDate: 'yesterday' } })).toContain('fromDate is invalid')
    expect(refused({ filter: { fromDate: 20270101 } })).toContain(
      "filter.fromDate is invalid; it is '20270101'",
    )
    expect(refused({ filter: { fromDate: '2027-01-02', toDate: '2027-01-01' } })).toContain(
      'later than toDate',
    )
  })

  it('with letters that are none, or too many', () => {
    const ids = (value: unknown) => refusal({ action: 'retry', ids: value })
    expect(ids('hmac/x')).toContain("ids is invalid; it is 'hmac/x', give a list")
    expect(ids([])).toContain('ids is invalid; it is empty')
    expect(ids(Array(10_001).fill('a/b'))).toContain('it has 10001 letters, at most 10000 are allowed')
    expect(ids(Array(10_000).fill('a/b'))).toBe('it was taken')
    for (const id of ['hmac', '/x', 'hmac/', '', 5, null, ['a', 'b']])
      expect(ids(['a/b', id])).toContain('ids[1] is invalid; it is ')
    expect(ids([{ engine: 'hmac' }])).toContain('ids[0].rowKey is invalid; it is missing')
    expect(ids([{ engine: 5, rowKey: 'x' }])).toContain('ids[0].engine is invalid; it is a number')
    expect(ids([`hmac/${'x'.repeat(4_097)}`])).toContain('ids[0] is invalid; it has 4097 characters')
  })

  it('with an action that there is not, or fields that the action does not have', () => {
    expect(refusal({ filter: {} })).toContain('action is invalid; it is missing')
    expect(refused({ action: 'burn' })).toContain("action is invalid; 'burn' is none of retry, move, ")
    expect(refused({ action: 5 })).toContain('action is invalid; it is a number')
    expect(refused({ queue: 'later' })).toContain('queue is invalid; it is only for move')
    expect(refused({ action: 'move' })).toContain('queue is invalid; it is missing')
    expect(refused({ action: 'move', queue: 'a b' })).toContain('queue_name_whitespace')
    expect(refused({ action: 'move', queue: '' })).toContain('queue_name_empty')
    expect(refused({ action: 'restore', canary: 1 })).toContain(
      'canary is invalid; it is only for retry and move',
    )
    expect(refused({ action: 'restore', repair: { mapping: '$' } })).toContain(
      'repair is invalid; it is only for',
    )
    expect(refused({ order: 'random' })).toContain("order is invalid; 'random' is none of key, capture, none")
  })

  it.each([0, -1, 5e-324, 1_000_000.5, Number.POSITIVE_INFINITY, Number.NaN, '50', true, {}, []])(
    'with the rate %s',
    (rate) => {
      expect(refused({ rate })).toMatch(
        /^parameter_invalid: rate is invalid; it is .+, give a number from 0.00001 to 1000000$/,
      )
    },
  )

  it('with a canary or a stop rule out of bounds', () => {
    for (const canary of [0, -1, 10_001, 1.5, 'ten', true, []])
      expect(refused({ canary })).toMatch(/canary is invalid; it is .+, give a whole number from 1 to 10000/)
    expect(refused({ canary: { letters: 0 } })).toContain("canary.letters is invalid; it is '0'")
    expect(refused({ canary: { letters: null } })).toContain('canary.letters is invalid; it is null')
    expect(refused({ canary: { confirmPercent: 101 } })).toContain('canary.confirmPercent is invalid')
    expect(refused({ canary: { waitSeconds: 0 } })).toContain('canary.waitSeconds is invalid')
    expect(refused({ canary: { waitSeconds: 86_401 } })).toContain('from 1 to 86400')
    expect(refused({ stopRule: 20 })).toContain(
      "stopRule is invalid; it is '20', give an object of percent, of",
    )
    expect(refused({ stopRule: { percent: 20 } })).toContain('stopRule.of is invalid; it is missing')
    expect(refused({ stopRule: { of: 100 } })).toContain('stopRule.percent is invalid; it is missing')
    for (const percent of [-1, 100, '20'])
      expect(refused({ stopRule: { percent, of: 1 } })).toContain('stopRule.percent')
    for (const of of [0, 10_001, 1.5])
      expect(refused({ stopRule: { percent: 1, of } })).toContain('stopRule.of')
  })

  it('with a repair that is none, or has no bottom', () => {
    expect(refused({ repair: 'x' })).toContain('parameter_invalid: repair')
    expect(refused({ repair: { patch: [{ op: 'burn', path: '/a' }] } })).toContain('repair.patch[0].op')
    const deep = `${'['.repeat(50_000)}1e400${']'.repeat(50_000)}`
    const text = `{"action":"retry","filter":{},"repair":{"patch":[{"op":"add","path":"/n","value":${deep}}]}}`
    const body = { text, fields: JSON.parse(text) }
    expect(() => readPlanRequest(body, 'nell')).toThrow('repair is invalid; it is nested too deeply')
  })

  it('with a reason that is too long, and to discard without one', () => {
    expect(refused({ reason: 'x'.repeat(4_001) })).toContain('reason is invalid; it has 4001 characters')
    expect(refused({ action: 'discard' })).toContain('reason is invalid; it is missing')
    expect(refused({ action: 'discard', reason: '  ' })).toContain('reason is invalid; it is missing')
    expect(refused({ action: 'discard', reason: 'seen' })).toBe('it was taken')
  })
})
