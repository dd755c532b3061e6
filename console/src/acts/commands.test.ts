import { describe, expect, it } from 'vitest'
import { letterCommand, redriveCommand, retryWithCurl, shellWord } from './commands.ts'
import { CAREFUL, FRESH } from './plan-draft.ts'

const NOW = Date.parse('2027-01-10T00:00:00Z')

describe('a command', () => {
  it('quotes what a shell would read otherwise', () => {
    expect(shellWord('i-7-2027')).toBe('i-7-2027')
    expect(shellWord("it's $HOME")).toBe(String.raw`'it'\''s $HOME'`)
    expect(shellWord('')).toBe("''")
  })

  it('for one letter names it', () => {
    expect(letterCommand('discard', { engine: 'hmac', rowKey: 'a b%2F' }, 'test data')).toBe(
      "bartleby letters discard hmac 'a b%2F' --notes 'test data'",
    )
  })

  it('for many has their query in the words of the console, and the terms that are not as usual', () => {
    const filter = { originalQueue: 'orders', q: 'connection: reset' }
    expect(redriveCommand({ act: 'retry', filter, what: '' }, FRESH, NOW)).toBe(
      `bartleby redrive plan 'status:pending queue:orders "connection: reset"' --action retry --start`,
    )
    const careful = {
      ...FRESH,
      ...CAREFUL,
      confirmPercent: 90,
      waitSeconds: 90,
      rate: 2.5,
      order: 'none',
      reason: 'why',
    } as const
    expect(redriveCommand({ act: 'retry', filter: { status: 'Pending' }, what: '' }, careful, NOW)).toBe(
      'bartleby redrive plan status:pending --action retry --rate 2.5 --canary 10:90 --canary-wait 90s --stop 20/100 --order none --reason why --start',
    )
    expect(redriveCommand({ act: 'restore', filter: {}, what: '' }, FRESH, NOW)).toBe(
      'bartleby redrive plan status:resolved --action restore --start\nbartleby redrive plan status:expired --action restore --start',
    )
    // What an act has no use for is not said.
    expect(redriveCommand({ act: 'restore', filter: { status: 'Expired' }, what: '' }, careful, NOW)).toBe(
      'bartleby redrive plan status:expired --action restore --rate 2.5 --reason why --start',
    )
  })

  it('for many has the repair', () => {
    const draft = {
      ...FRESH,
      queue: 'orders-2',
      payload: 'patch',
      patch: '[{"op":"remove","path":"/a"}]',
      headers: { kind: 'v2', reference: null },
    } as const
    expect(redriveCommand({ act: 'move', filter: {}, what: '' }, draft, NOW)).toBe(
      `bartleby redrive plan status:pending --action move --to orders-2 --patch '[{"op":"remove","path":"/a"}]' --set-header kind=v2 --remove-header reference --start`,
    )
  })

  it('for chosen letters names them, many of them line by line', () => {
    const keys = Array.from({ length: 21 }, (_, number) => ({ engine: 'hmac', rowKey: `k${number}` }))
    const two = redriveCommand({ act: 'retry', filter: {}, keys: keys.slice(0, 2), what: '' }, FRESH, NOW)
    expect(two).toBe('bartleby redrive plan --id hmac/k0 --id hmac/k1 --action retry --start')
    const lines = redriveCommand({ act: 'retry', filter: {}, keys, what: '' }, FRESH, NOW).split('\n')
    expect(lines[0]).toBe("bartleby redrive plan --ids-file - --action retry --start --yes <<'END'")
    expect([lines[1], lines.at(-1), lines.length]).toEqual(['hmac/k0', 'END', 23])
  })

  it('for curl keeps the token out', () => {
    const letter = { engine: 'hmac', rowKey: 'a%2Fb' }
    expect(retryWithCurl(letter, 'http://127.0.0.1:1853', false)).toBe(
      'curl -X POST http://127.0.0.1:1853/api/dlq/hmac/a%252Fb/retry',
    )
    expect(retryWithCurl(letter, 'http://h', true)).toContain('-H "authorization: Bearer $BARTLEBY_TOKEN" ')
  })
})
