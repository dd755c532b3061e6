import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { ConfigSchema } from '../src/config/schema.ts'
import { VARIABLES } from '../src/core/settings/environment.ts'
import { leavesOf } from '../src/core/settings/read.ts'
import { configDoc } from './config-doc.ts'

describe('docs/configuration.md', () => {
  const text = configDoc()
  const rows = [...text.matchAll(/^\| `([^`]+)` \| (.*?) \| (.*?) \| (.*) \|$/gm)]

  it('is what the schemas say (`npm run docs:config` writes it)', () => {
    expect(readFileSync(new URL('../docs/configuration.md', import.meta.url), 'utf8')).toBe(text)
  })

  it('has a row for every key and every variable', () => {
    const named = rows.map(([, name]) => name)
    const keys = leavesOf(ConfigSchema).flatMap(([key]) => (key === 'testApi' ? [] : key))
    expect(named).toEqual(expect.arrayContaining([...keys, ...VARIABLES.map(({ name }) => name)]))
  })

  it('says of every key what it does and what it allows', () => {
    const settings = rows.filter(([, name = '']) => !VARIABLES.some((variable) => variable.name === name))
    const poor = settings.filter(
      ([, , allowed, , told = '']) => allowed === '' || !/^[A-Z].*\.\*?$/.test(told),
    )
    expect(poor.map(([row]) => row)).toEqual([])
  })
})
