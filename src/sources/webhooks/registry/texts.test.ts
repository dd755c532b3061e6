import { describe, expect, it } from 'vitest'
import { withoutCredentials } from './texts.ts'

describe('an address that everybody may see', () => {
  it.each([
    ['http://host', 'http://host'],
    ['http://user:secret@host/a@b', 'http://host/a@b'],
    ['HTTPS://user:se@cret@Host:1?q=a@b', 'HTTPS://Host:1?q=a@b'],
    ['http://host\\\\@b', 'http://host\\\\@b'],
  ])('has no credentials: %s', (given, shown) => {
    expect(withoutCredentials(given)).toBe(shown)
    expect(URL.parse(shown)?.host).toBe(URL.parse(given)?.host)
  })
})
