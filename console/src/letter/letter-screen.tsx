/** One letter in one view: the error, then what happened, the payload and the facts beside each other; the rest below. */

import { Button, Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { letterQuery } from '../api/queries.ts'
import type { LetterDetail } from '../api/types.ts'
import { Page, Panel, Shown } from '../kit/page.tsx'
import { StatusBadge } from '../kit/status.tsx'
import { visible } from '../kit/visible.ts'
import { ErrorTab } from './error-tab.tsx'
import { FactsPanel } from './facts-panel.tsx'
import { HeadersTab } from './headers-tab.tsx'
import './letter.css'
import { LetterActsBar } from './letter-acts.tsx'
import { NoLetter } from './no-letter.tsx'
import { PayloadPanel } from './payload-panel.tsx'
import { ProvenanceTab } from './provenance-tab.tsx'
import { RawTab } from './raw-tab.tsx'
import { SameKeyTab } from './same-key-tab.tsx'
import { StandingNote } from './standing-note.tsx'
import { TimelineList } from './timeline-list.tsx'

const route = getRouteApi('/letters/$engine/$rowKey')

interface Tab {
  readonly id: string
  readonly title: string
  show(letter: LetterDetail): ReactNode
}

const TABS: readonly Tab[] = [
  { id: 'error', title: 'Stack and attempts', show: (letter) => <ErrorTab letter={letter} /> },
  { id: 'headers', title: 'Headers', show: (letter) => <HeadersTab letter={letter} /> },
  { id: 'provenance', title: 'Provenance', show: (letter) => <ProvenanceTab letter={letter} /> },
  { id: 'same-key', title: 'Same key', show: (letter) => <SameKeyTab letter={letter} /> },
  { id: 'raw', title: 'Raw', show: (letter) => <RawTab letter={letter} /> },
]

export function LetterScreen() {
  const key = route.useParams()
  const read = useQuery(letterQuery(key))
  const letter = read.data
  return (
    <Page
      title={`${key.engine} · ${visible(letter?.instanceId ?? key.rowKey)}`}
      {...(letter === undefined ? {} : { beside: <LetterActsBar letter={letter} /> })}
    >
      <Shown read={read} what="the letter" unknown={<NoLetter letter={key} />}>
        {(detail) => <CaseFile letter={detail} />}
      </Shown>
    </Page>
  )
}

function CaseFile({ letter }: { readonly letter: LetterDetail }) {
  return (
    <>
      <ErrorText letter={letter} />
      <StandingNote letter={letter} />
      <div className="case-file">
        <Panel title="Timeline">
          <TimelineList letter={letter} />
        </Panel>
        <Panel title="Payload">
          <PayloadPanel letter={letter} />
        </Panel>
        <Panel title="Facts">
          <FactsPanel letter={letter} />
        </Panel>
      </div>
      <More letter={letter} />
    </>
  )
}

/** Longer messages are folded. */
const FOLDED_LENGTH = 400

/** The error in full, once; everything else on the page leaves it out. */
function ErrorText({ letter }: { readonly letter: LetterDetail }) {
  const { errorClass, errorMessage } = letter
  const [isOpen, setOpen] = useState(false)
  const isLong = errorMessage.length > FOLDED_LENGTH
  return (
    <section aria-label="Error" className="letter-error">
      <StatusBadge letter={letter} />
      <div>
        <p className="bytes">
          {errorClass !== '' && <strong>{errorClass}: </strong>}
          {visible(isLong && !isOpen ? `${errorMessage.slice(0, FOLDED_LENGTH)}…` : errorMessage)}
        </p>
        {isLong && (
          <Button size="compact-xs" variant="default" onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Show less' : 'Show all of it'}
          </Button>
        )}
      </div>
    </section>
  )
}

function More({ letter }: { readonly letter: LetterDetail }) {
  const { tab } = route.useSearch()
  const navigate = useNavigate()
  const { engine, rowKey } = letter
  const shown = TABS.find(({ id }) => id === tab)?.id ?? 'error'
  const choose = (id: string | null) =>
    void navigate({
      to: '/letters/$engine/$rowKey',
      params: { engine, rowKey },
      search: id === null || id === 'error' ? {} : { tab: id },
      replace: true,
      resetScroll: false,
    })
  return (
    <Tabs value={shown} onChange={choose} keepMounted={false}>
      <Tabs.List mb="md" aria-label="More about it">
        {TABS.map(({ id, title }) => (
          <Tabs.Tab key={id} value={id}>
            {title}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {TABS.map(({ id, show }) => (
        <Tabs.Panel key={id} value={id}>
          {show(letter)}
        </Tabs.Panel>
      ))}
    </Tabs>
  )
}
