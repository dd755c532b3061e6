/** Leads to what is in a queue. */
import { Anchor } from '@mantine/core'
import { Link } from '@tanstack/react-router'

export function QueueLink({ name }: { readonly name: string }) {
  return (
    <Anchor inherit renderRoot={(props) => <Link to="/sources/queues" search={{ queue: name }} {...props} />}>
      {name}
    </Anchor>
  )
}
