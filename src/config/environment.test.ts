import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { files } from '../../test/architecture/product.ts'
import { ENVIRONMENT, VARIABLES, variableOf } from '../core/settings/environment.ts'
import { leavesOf } from '../core/settings/read.ts'
import { ConfigSchema } from './schema.ts'

/** May look at the environment itself: it hands it on. */
const HANDED_ON = ['core/settings/environment.ts', 'redrive/repair/repair-runner.ts', 'terminal/terminal.ts']

describe('the environment', () => {
  it('is read through its table alone', () => {
    const readers = files.filter(({ path }) => {
      const text = readFileSync(join(import.meta.dirname, '..', path), 'utf8')
      return /\benv\b\??(\.[A-Z]|\[)/.test(text) && !HANDED_ON.includes(path)
    })
    expect(readers.map(({ path }) => path)).toEqual([])
  })

  it('gives keys that there are', () => {
    const keys = leavesOf(ConfigSchema).map(([key]) => key)
    expect(VARIABLES.flatMap(({ key }) => key ?? []).filter((key) => !keys.includes(key))).toEqual([])
  })

  it('has no other variables of ours in texts of the product', () => {
    const named = files.flatMap(({ texts }) =>
      texts.flatMap((text) => text.match(/\bBARTLEBY_[A-Z_]+/g) ?? []),
    )
    expect([...new Set(named)].filter((name) => !(name in ENVIRONMENT))).toEqual([])
  })

  it('takes a variable that is set to nothing as not set', () => {
    expect(variableOf({ BARTLEBY_URL: '' }, 'BARTLEBY_URL')).toBeUndefined()
    expect(variableOf({ BARTLEBY_URL: 'http://a' }, 'BARTLEBY_URL')).toBe('http://a')
  })
})
