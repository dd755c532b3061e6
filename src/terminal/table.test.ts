import { describe, expect, it } from 'vitest'
import { type Column, columnsText, layOut } from './table.ts'

interface Row {
  readonly name: string
  readonly error: string
  readonly count: number
}

const COLUMNS: readonly Column<Row>[] = [
  { heading: 'NAME', text: ({ name }) => name, least: 6, precious: true },
  { heading: 'ERROR', text: ({ error }) => error, flexible: true },
  { heading: 'N', text: ({ count }) => String(count), right: true },
]

const row = (name: string, error: string, count = 1): Row => ({ name, error, count })

describe('columns', () => {
  it('are as wide as they need where nothing bounds them', () => {
    expect(columnsText(COLUMNS, [row('a', 'broken', 5), row('long-name', 'x', 12)], undefined)).toBe(
      'NAME       ERROR    N\na          broken   5\nlong-name  x       12',
    )
  })

  it('cut the flexible one first, then those that can be cut', () => {
    const rows = [row('a-name-of-its-own', 'an error that says a lot of things')]
    expect(columnsText(COLUMNS, rows, 50).split('\n')[1]).toBe(
      'a-name-of-its-own  an error that says a lot of…  1',
    )
    const narrow = columnsText(COLUMNS, rows, 30).split('\n')[1] ?? ''
    expect(narrow).toBe('a-name-o…  an error that s…  1')
    expect(narrow).toHaveLength(30)
  })

  it('stay as they are for the rows of later pages', () => {
    const { line } = layOut(COLUMNS, [row('abcd', 'short')], undefined)
    expect(line(row('abcdefgh', 'a longer one'))).toBe('abc…  a lo…  1')
  })

  it('show control characters as text', () => {
    expect(columnsText(COLUMNS, [row('a\u001b[2J', 'b\nc\u202e')], undefined)).toContain(
      'a\\x1b[2J  b\\nc\\u202e  1',
    )
  })
})
