/** Some letters of a group side by side, with what varies in their messages marked. */
import { Text } from '@mantine/core'
import type { LetterItem } from '../api/types.ts'
import { LetterLink } from '../kit/links.tsx'
import { Panel } from '../kit/page.tsx'
import { StatusBadge } from '../kit/status.tsx'
import { Time } from '../time/time.tsx'
import { compareMessages, differentOnes, type Piece } from './compare.ts'

const MOST = 4

export function SamplesPanel({ letters }: { readonly letters: readonly LetterItem[] }) {
  const samples = differentOnes(letters, MOST)
  const compared = compareMessages(samples.map(({ errorMessage }) => errorMessage))
  return (
    <Panel title="Samples">
      <Text size="sm" c="var(--quiet)">
        {wordsOn(letters.length, samples.length)}
      </Text>
      <div className="samples">
        {samples.map((letter, place) => (
          <article key={`${letter.engine}/${letter.rowKey}`} className="sample">
            <div className="sample-head">
              <LetterLink letter={letter}>{letter.instanceId}</LetterLink>
              <StatusBadge letter={letter} />
            </div>
            <p className="bytes sample-message">
              <Compared pieces={compared[place] ?? []} />
            </p>
            <Text size="xs" c="var(--quiet)">
              {letter.engine} · {letter.dequeueCount} {letter.dequeueCount === 1 ? 'attempt' : 'attempts'} ·{' '}
              <Time at={letter.lastFailureAtUtc} />
            </Text>
          </article>
        ))}
      </div>
    </Panel>
  )
}

function wordsOn(letters: number, samples: number): string {
  if (letters === 0) return 'No letters left.'
  if (letters === 1) return 'There is one letter; nothing to compare it with.'
  if (samples === 1) return `The newest ${letters} letters say the same, word by word.`
  return 'What differs from one to the next is marked and underlined.'
}

function Compared({ pieces }: { readonly pieces: readonly Piece[] }) {
  return pieces.map(({ text, varies }, place) => {
    const key = `${place} ${text}`
    return varies ? (
      <mark key={key} className="varies">
        {text}
      </mark>
    ) : (
      <span key={key}>{text}</span>
    )
  })
}
