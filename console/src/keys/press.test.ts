import { describe, expect, it } from 'vitest'
import { meaningOf } from './press.ts'

const KNOWN = ['j', 'd', ' ', 'X', '*', 'Escape', 'g s', 'g d']

describe('a key press', () => {
  it('runs a key of its own at once', () => {
    expect(meaningOf(KNOWN, null, 'j')).toEqual({ kind: 'run', keys: 'j' })
    expect(meaningOf(KNOWN, null, ' ')).toEqual({ kind: 'run', keys: ' ' })
  })

  it('waits after the first of two, and runs the sequence', () => {
    expect(meaningOf(KNOWN, null, 'g')).toEqual({ kind: 'wait' })
    expect(meaningOf(KNOWN, 'g', 's')).toEqual({ kind: 'run', keys: 'g s' })
  })

  it('means nothing as the second of an unknown sequence, even where it is known alone', () => {
    expect(meaningOf(KNOWN, 'g', 'j')).toEqual({ kind: 'nothing' })
  })

  it('begins a sequence anew when the first key is pressed twice', () => {
    expect(meaningOf(KNOWN, 'g', 'g')).toEqual({ kind: 'wait' })
  })

  it('tells small letters from great ones', () => {
    expect(meaningOf(KNOWN, null, 'x')).toEqual({ kind: 'nothing' })
    expect(meaningOf(KNOWN, null, 'X')).toEqual({ kind: 'run', keys: 'X' })
  })
})
