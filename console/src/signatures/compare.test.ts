import { describe, expect, it } from 'vitest'
import { compareMessages, differentOnes, type Piece } from './compare.ts'

/** What varies stands in brackets. */
const shown = (pieces: readonly Piece[]): string =>
  pieces.map(({ text, varies }) => (varies ? `[${text}]` : text)).join('')

const compare = (...messages: string[]): string[] => compareMessages(messages).map(shown)

describe('messages side by side', () => {
  it('mark the words that differ', () => {
    expect(compare('no template for tenant 17', 'no template for tenant 4')).toEqual([
      'no template for tenant [17]',
      'no template for tenant [4]',
    ])
  })

  it('take addresses, ids and mail addresses as one word', () => {
    expect(
      compare('connect 10.0.3.7:443 as a@x.org (id=4f-1)', 'connect 10.0.9.7:443 as b@x.org (id=5f-1)'),
    ).toEqual([
      'connect [10.0.3.7:443] as [a@x.org] (id=[4f-1])',
      'connect [10.0.9.7:443] as [b@x.org] (id=[5f-1])',
    ])
  })

  it('mark in all of them what one alone says otherwise', () => {
    expect(compare('a b c', 'a b c', 'a x c')).toEqual(['a [b] c', 'a [b] c', 'a [x] c'])
  })

  it('join things that vary beside each other', () => {
    expect(compare('at 1 2 end', 'at 3 4 end')).toEqual(['at [1 2] end', 'at [3 4] end'])
  })

  it('mark nothing where all say the same, and nothing of one alone', () => {
    expect(compare('same', 'same')).toEqual(['same', 'same'])
    expect(compare('alone')).toEqual(['alone'])
    expect(compare()).toEqual([])
  })

  it('give every message back as it was', () => {
    const messages = ['x\n  y "z"  ', 'x\n  q "ö"  ']
    expect(compareMessages(messages).map((pieces) => pieces.map(({ text }) => text).join(''))).toEqual(
      messages,
    )
  })
})

describe('samples of a group', () => {
  it('are letters that say different things', () => {
    const letters = ['a', 'a', 'b', 'a', 'c'].map((errorMessage, id) => ({ id, errorMessage }))
    expect(differentOnes(letters, 2).map(({ id }) => id)).toEqual([0, 2])
  })
})
