"""The public names, for editors and type checkers; ``__init__.py`` loads each when it is first asked for."""

from flamelib.core.guarantees import Adjacency as Adjacency
from flamelib.core.guarantees import ApproxDP as ApproxDP
from flamelib.core.profiles import AnyProfile
from flamelib.core.vocabulary import DomainError as DomainError
from flamelib.front.asking import audit as audit
from flamelib.front.asking import compare as compare
from flamelib.front.asking import evaluate as evaluate
from flamelib.front.checkin import Checkin as Checkin
from flamelib.front.checkin import Summed as Summed
from flamelib.front.cloak import Cloak as Cloak
from flamelib.front.questions import account as account
from flamelib.front.questions import bounds as bounds
from flamelib.front.questions import calibrate as calibrate
from flamelib.front.questions import run as run
from flamelib.front.results import Bounds as Bounds
from flamelib.front.results import Calibrated as Calibrated
from flamelib.front.results import Guarantee as Guarantee
from flamelib.front.rounds import Rounds as Rounds
from flamelib.front.shuffled import Shuffled as Shuffled
from flamelib.mechanisms.integers.noise import PolyaShare as PolyaShare
from flamelib.mechanisms.randomizers import GaussianNoise as GaussianNoise
from flamelib.mechanisms.randomizers import KaryResponse as KaryResponse
from flamelib.mechanisms.randomizers import LaplaceNoise as LaplaceNoise
from flamelib.mechanisms.supports import HadamardResponse as HadamardResponse
from flamelib.mechanisms.supports import LocalHashing as LocalHashing
from flamelib.mechanisms.supports import OptimizedUnary as OptimizedUnary
from flamelib.mechanisms.supports import Rappor as Rappor
from flamelib.mechanisms.supports import SubsetSelection as SubsetSelection
from flamelib.mechanisms.tables import TableRandomizer as TableRandomizer
from flamelib.protocols.flame import FlameDouble as FlameDouble
from flamelib.protocols.flame import FlameSimple as FlameSimple
from flamelib.protocols.flame import FlameTopk as FlameTopk
from flamelib.protocols.participation import Participation as Participation
from flamelib.uses.client_ledger import ClientLedger as ClientLedger
from flamelib.uses.vetting import vet as vet

AnyRandomizer = AnyProfile
__all__: list[str]
