import { describe, expect, it } from 'vitest'
import { letterCommand, retryWithCurl, shellWord, walkCommand } from './commands.ts'

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

  it('for many has their query in the words of the console', () => {
    const filter = { status: 'Pending', originalQueue: 'orders', q: 'connection: reset' }
    expect(walkCommand('retry', filter, { nowMs: NOW })).toBe(
      `bartleby letters retry --query 'status:pending queue:orders connection: reset' --yes`.replace(
        'connection: reset',
        '"connection: reset"',
      ),
    )
    expect(walkCommand('restore', { status: 'Expired' }, { notes: 'why', limit: 10, nowMs: NOW })).toBe(
      'bartleby letters restore --query status:expired --notes why --limit 10 --yes',
    )
  })

  it('for curl keeps the token out', () => {
    const letter = { engine: 'hmac', rowKey: 'a%2Fb' }
    expect(retryWithCurl(letter, 'http://127.0.0.1:1853', false)).toBe(
      'curl -X POST http://127.0.0.1:1853/api/dlq/hmac/a%252Fb/retry',
    )
    expect(retryWithCurl(letter, 'http://h', true)).toContain('-H "authorization: Bearer $BARTLEBY_TOKEN" ')
  })
})
