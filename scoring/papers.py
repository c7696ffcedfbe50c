"""The papers of evaluators and metrics in BibTeX. An entry of the catalogue names its papers by key.

The command `evaluators` of packages without Django is here as well: its BibTeX needs no package at all.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Sequence

from evalapp import __version__

#: In the order of the catalogue. Keys are those of the ACL Anthology where it has the paper.
_BIBTEX = r"""
@inproceedings{perrella-etal-2024-guardians,
  title = {Guardians of the Machine Translation Meta-Evaluation: Sentinel Metrics Fall In!},
  author = {Perrella, Stefano and Proietti, Lorenzo and Scir{\`e}, Alessandro and Barba, Edoardo and Navigli, Roberto},
  booktitle = {Proceedings of the 62nd Annual Meeting of the Association for Computational Linguistics},
  year = {2024}, pages = {16216--16244}}
@inproceedings{papineni-etal-2002-bleu,
  title = {{BLEU}: a Method for Automatic Evaluation of Machine Translation},
  author = {Papineni, Kishore and Roukos, Salim and Ward, Todd and Zhu, Wei-Jing},
  booktitle = {Proceedings of the 40th Annual Meeting of the Association for Computational Linguistics},
  year = {2002}, pages = {311--318}, doi = {10.3115/1073083.1073135}}
@inproceedings{post-2018-call,
  title = {A Call for Clarity in Reporting {BLEU} Scores},
  author = {Post, Matt},
  booktitle = {Proceedings of the Third Conference on Machine Translation: Research Papers},
  year = {2018}, pages = {186--191}, doi = {10.18653/v1/W18-6319}}
@inproceedings{zhou-xu-2020-learning,
  title = {Learning to Compare for Better Training and Evaluation of Open Domain Natural Language Generation Models},
  author = {Zhou, Wangchunshu and Xu, Ke},
  booktitle = {Proceedings of the AAAI Conference on Artificial Intelligence},
  year = {2020}, volume = {34}, number = {05}, pages = {9717--9724}, doi = {10.1609/aaai.v34i05.6521}}
@inproceedings{gao-etal-2021-ream,
  title = {{REAM}{\#}: An Enhancement Approach to Reference-based Evaluation Metrics for Open-domain Dialog Generation},
  author = {Gao, Jun and Bi, Wei and Xu, Ruifeng and Shi, Shuming},
  booktitle = {Findings of the Association for Computational Linguistics: ACL-IJCNLP 2021},
  year = {2021}, pages = {2487--2500}}
@inproceedings{freitag-etal-2020-bleu,
  title = {{BLEU} might be Guilty but References are not Innocent},
  author = {Freitag, Markus and Grangier, David and Caswell, Isaac},
  booktitle = {Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing (EMNLP)},
  year = {2020}, pages = {61--71}, doi = {10.18653/v1/2020.emnlp-main.5}}
@inproceedings{rajpurkar-etal-2016-squad,
  title = {{SQ}u{AD}: 100,000+ Questions for Machine Comprehension of Text},
  author = {Rajpurkar, Pranav and Zhang, Jian and Lopyrev, Konstantin and Liang, Percy},
  booktitle = {Proceedings of the 2016 Conference on Empirical Methods in Natural Language Processing},
  year = {2016}, pages = {2383--2392}, doi = {10.18653/v1/D16-1264}}
@inproceedings{popovic-2015-chrf,
  title = {chr{F}: character n-gram {F}-score for automatic {MT} evaluation},
  author = {Popovi{\'c}, Maja},
  booktitle = {Proceedings of the Tenth Workshop on Statistical Machine Translation},
  year = {2015}, pages = {392--395}, doi = {10.18653/v1/W15-3049}}
@inproceedings{snover-etal-2006-study,
  title = {A Study of Translation Edit Rate with Targeted Human Annotation},
  author = {Snover, Matthew and Dorr, Bonnie and Schwartz, Rich and Micciulla, Linnea and Makhoul, John},
  booktitle = {Proceedings of the 7th Conference of the Association for Machine Translation in the Americas: Technical
               Papers},
  year = {2006}, pages = {223--231}, url = {https://aclanthology.org/2006.amta-papers.25}}
@inproceedings{lin-2004-rouge,
  title = {{ROUGE}: A Package for Automatic Evaluation of Summaries},
  author = {Lin, Chin-Yew},
  booktitle = {Text Summarization Branches Out},
  year = {2004}, pages = {74--81}}
@inproceedings{banerjee-lavie-2005-meteor,
  title = {{METEOR}: An Automatic Metric for {MT} Evaluation with Improved Correlation with Human Judgments},
  author = {Banerjee, Satanjeev and Lavie, Alon},
  booktitle = {Proceedings of the {ACL} Workshop on Intrinsic and Extrinsic Evaluation Measures for Machine Translation
               and/or Summarization},
  year = {2005}, pages = {65--72}}
@inproceedings{lavie-agarwal-2007-meteor,
  title = {{METEOR}: An Automatic Metric for {MT} Evaluation with High Levels of Correlation with Human Judgments},
  author = {Lavie, Alon and Agarwal, Abhaya},
  booktitle = {Proceedings of the Second Workshop on Statistical Machine Translation},
  year = {2007}, pages = {228--231}}
@inproceedings{li-etal-2016-diversity,
  title = {A Diversity-Promoting Objective Function for Neural Conversation Models},
  author = {Li, Jiwei and Galley, Michel and Brockett, Chris and Gao, Jianfeng and Dolan, Bill},
  booktitle = {Proceedings of the 2016 Conference of the North {A}merican Chapter of the Association for Computational
               Linguistics: Human Language Technologies},
  year = {2016}, pages = {110--119}, doi = {10.18653/v1/N16-1014}}
@inproceedings{liu-etal-2022-rethinking,
  title = {Rethinking and Refining the Distinct Metric},
  author = {Liu, Siyang and Sabour, Sahand and Zheng, Yinhe and Ke, Pei and Zhu, Xiaoyan and Huang, Minlie},
  booktitle = {Proceedings of the 60th Annual Meeting of the Association for Computational Linguistics (Short Papers)},
  year = {2022}, pages = {762--770}, doi = {10.18653/v1/2022.acl-short.86}}
@article{jelinek-etal-1977-perplexity,
  title = {Perplexity---a measure of the difficulty of speech recognition tasks},
  author = {Jelinek, Fred and Mercer, Robert L. and Bahl, Lalit R. and Baker, James K.},
  journal = {The Journal of the Acoustical Society of America},
  year = {1977}, volume = {62}, number = {S1}, pages = {S63}, doi = {10.1121/1.2016299}}
@inproceedings{liu-etal-2016-evaluate,
  title = {How {NOT} To Evaluate Your Dialogue System: An Empirical Study of Unsupervised Evaluation Metrics for
           Dialogue Response Generation},
  author = {Liu, Chia-Wei and Lowe, Ryan and Serban, Iulian and Noseworthy, Mike and Charlin, Laurent and
            Pineau, Joelle},
  booktitle = {Proceedings of the 2016 Conference on Empirical Methods in Natural Language Processing},
  year = {2016}, pages = {2122--2132}, doi = {10.18653/v1/D16-1230}}
@inproceedings{forgues-etal-2014-bootstrapping,
  title = {Bootstrapping Dialog Systems with Word Embeddings},
  author = {Forgues, Gabriel and Pineau, Joelle and Larchev{\^e}que, Jean-Marie and Tremblay, R{\'e}al},
  booktitle = {NIPS Workshop on Modern Machine Learning and Natural Language Processing},
  year = {2014}}
@inproceedings{rus-lintean-2012-comparison,
  title = {A Comparison of Greedy and Optimal Assessment of Natural Language Student Input Using Word-to-Word
           Similarity Metrics},
  author = {Rus, Vasile and Lintean, Mihai},
  booktitle = {Proceedings of the Seventh Workshop on Building Educational Applications Using {NLP}},
  year = {2012}, pages = {157--162}}
@inproceedings{zhang-etal-2020-bertscore,
  title = {{BERTS}core: Evaluating Text Generation with {BERT}},
  author = {Zhang, Tianyi and Kishore, Varsha and Wu, Felix and Weinberger, Kilian Q. and Artzi, Yoav},
  booktitle = {International Conference on Learning Representations},
  year = {2020}, url = {https://openreview.net/forum?id=SkeHuCVFDr}}
@inproceedings{zhao-etal-2019-moverscore,
  title = {{M}over{S}core: Text Generation Evaluating with Contextualized Embeddings and Earth Mover Distance},
  author = {Zhao, Wei and Peyrard, Maxime and Liu, Fei and Gao, Yang and Meyer, Christian M. and Eger, Steffen},
  booktitle = {Proceedings of the 2019 Conference on Empirical Methods in Natural Language Processing and the 9th
               International Joint Conference on Natural Language Processing},
  year = {2019}, pages = {563--578}, doi = {10.18653/v1/D19-1053}}
@inproceedings{sellam-etal-2020-bleurt,
  title = {{BLEURT}: Learning Robust Metrics for Text Generation},
  author = {Sellam, Thibault and Das, Dipanjan and Parikh, Ankur},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics},
  year = {2020}, pages = {7881--7892}, doi = {10.18653/v1/2020.acl-main.704}}
@inproceedings{gu-etal-2021-perception,
  title = {Perception Score: A Learned Metric for Open-ended Text Generation Evaluation},
  author = {Gu, Jing and Wu, Qingyang and Yu, Zhou},
  booktitle = {Proceedings of the AAAI Conference on Artificial Intelligence},
  year = {2021}, volume = {35}, number = {14}, pages = {12902--12910}, doi = {10.1609/aaai.v35i14.17526}}
@inproceedings{a-2022-automating,
  title = {Automating Human Evaluation of Dialogue Systems},
  author = {A, Sujan Reddy},
  booktitle = {Proceedings of the 2022 Conference of the North {A}merican Chapter of the Association for Computational
               Linguistics: Human Language Technologies: Student Research Workshop},
  year = {2022}, pages = {229--234}, doi = {10.18653/v1/2022.naacl-srw.29}}
@inproceedings{sinha-etal-2020-learning,
  title = {Learning an Unreferenced Metric for Online Dialogue Evaluation},
  author = {Sinha, Koustuv and Parthasarathi, Prasanna and Wang, Jasmine and Lowe, Ryan and Hamilton, William L. and
            Pineau, Joelle},
  booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics},
  year = {2020}, pages = {2430--2441}, doi = {10.18653/v1/2020.acl-main.220}}
@inproceedings{tao-etal-2018-ruber,
  title = {{RUBER}: An Unsupervised Method for Automatic Evaluation of Open-Domain Dialog Systems},
  author = {Tao, Chongyang and Mou, Lili and Zhao, Dongyan and Yan, Rui},
  booktitle = {Proceedings of the AAAI Conference on Artificial Intelligence},
  year = {2018}, volume = {32}, number = {1}, doi = {10.1609/aaai.v32i1.11321}}
@inproceedings{conneau-etal-2017-supervised,
  title = {Supervised Learning of Universal Sentence Representations from Natural Language Inference Data},
  author = {Conneau, Alexis and Kiela, Douwe and Schwenk, Holger and Barrault, Lo{\"\i}c and Bordes, Antoine},
  booktitle = {Proceedings of the 2017 Conference on Empirical Methods in Natural Language Processing},
  year = {2017}, pages = {670--680}, doi = {10.18653/v1/D17-1070}}
@inproceedings{lowe-etal-2017-towards,
  title = {Towards an Automatic {T}uring Test: Learning to Evaluate Dialogue Responses},
  author = {Lowe, Ryan and Noseworthy, Michael and Serban, Iulian Vlad and Angelard-Gontier, Nicolas and
            Bengio, Yoshua and Pineau, Joelle},
  booktitle = {Proceedings of the 55th Annual Meeting of the Association for Computational Linguistics},
  year = {2017}, pages = {1116--1126}, doi = {10.18653/v1/P17-1103}}
@article{hoerl-kennard-1970-ridge,
  title = {Ridge Regression: Biased Estimation for Nonorthogonal Problems},
  author = {Hoerl, Arthur E. and Kennard, Robert W.},
  journal = {Technometrics},
  year = {1970}, volume = {12}, number = {1}, pages = {55--67}, doi = {10.1080/00401706.1970.10488634}}
"""
PAPERS = {match[1]: match[0].strip() for match in re.finditer(r"^@\w+\{([\w-]+),.*?\}\}$", _BIBTEX, re.M | re.S)}
_SOFTWARE = f"""@software{{evalapp,
  title = {{evalapp: evaluation of generated text by people and learned evaluators}},
  author = {{{{The evalapp contributors}}}},
  version = {{{__version__}}}, license = {{Apache-2.0}}}}"""


def write_bibtex(papers: Iterable[str]) -> str:
    """Return BibTeX of evalapp itself, then of `papers`, given by their keys, each once.

    >>> write_bibtex(["lin-2004-rouge"]).count("@")
    2
    """
    return "\n\n".join([_SOFTWARE, *(PAPERS[key] for key in dict.fromkeys(papers))]) + "\n"


def main(arguments: Sequence[str] | None = None, prog: str = "evalapp evaluators") -> int:
    """List the evaluators, or print their papers; return the exit status. `arguments` are those of the command (None:
    those of the process), `prog` its name in messages."""
    parser = argparse.ArgumentParser(prog=prog, description="List the evaluators, or print their papers in BibTeX.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; default: all")
    parser.add_argument("--bibtex", action="store_true", help="print the papers to cite in BibTeX, and evalapp itself")
    options = parser.parse_args(arguments)
    if options.bibtex and not options.names:
        print(write_bibtex(PAPERS), end="")
        return 0
    # Only the catalogue needs the extra `metrics`.
    from scoring.ml import UnknownEvaluator, catalogue
    from scoring.ml.registry import get_entry, resolve_alias

    try:
        chosen = [get_entry(resolve_alias(name)[0]) for name in options.names] or catalogue()
    except UnknownEvaluator as error:
        print(error, file=sys.stderr)
        return 2
    if options.bibtex:
        print(write_bibtex(key for entry in chosen for key in entry.papers), end="")
        return 0
    for entry in chosen:
        needs = f" Needs {', '.join(entry.needs)}." if entry.needs else ""
        print(f"{entry.name:<20} {entry.kind:<9} {entry.summary}{needs}")
    return 0
